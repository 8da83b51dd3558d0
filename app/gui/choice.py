"""One of several names: a field that shows as much of the chosen one as there is room for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QStandardItemModel, QWheelEvent
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox

from app.gui.plain import tip
from app.gui.whole_text import tells_whole

_MARGIN = 1
"""Pixels that the style leaves at either side of the name."""


class Choice(QComboBox):
    """Each name has a value. The list is as wide as its names; the wheel does not change it."""

    edited = Signal()

    def __init__(self, offers: Iterable[tuple[str, object]] = ()) -> None:
        super().__init__()
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(8)
        self._struck: Mapping[Any, str] = {}
        self._refused: Mapping[Any, str] = {}
        self.offer(offers)
        self.currentIndexChanged.connect(self.edited)

    def get(self) -> Any:
        """The value of the chosen offer."""
        return self.currentData()

    def offer(self, offers: Iterable[tuple[str, object]]) -> None:
        """Replaces the offers, and keeps the choice if it is still among them."""
        wanted = list(offers)
        if wanted == [(self.itemText(i), self.itemData(i)) for i in range(self.count())]:
            return
        chosen = self.currentData()
        self.blockSignals(True)
        self.clear()
        for text, value in wanted:
            self.addItem(text, value)
        self._show_reasons()
        self.put(chosen)
        self.blockSignals(False)

    def mark(self, reasons: Mapping[Any, str]) -> None:
        """Strikes through the offers that cannot be used, by their values, and says why on hover.

        Offers that come later are marked too.
        """
        self._struck = reasons
        self._show_reasons()

    def put(self, value: Any) -> None:
        """Chooses the offer with this value, or the first; one that is refused is not chosen."""
        found = [i for i in range(self.count()) if self.itemData(i) == value]
        self.setCurrentIndex(found[0] if found and value not in self._refused else 0)

    def refuse(self, reasons: Mapping[Any, str]) -> None:
        """Greys out the offers with these values; each tells its reason. Others are free again."""
        if reasons == self._refused:
            return
        self._refused = reasons
        self._show_reasons()
        self.put(self.currentData())

    def _show_reasons(self) -> None:
        model = self.model()
        for place in range(self.count()):
            text, value = self.itemText(place), self.itemData(place)
            reason = self._refused.get(value) or self._struck.get(value, "")
            if isinstance(model, QStandardItemModel):
                model.item(place).setEnabled(value not in self._refused)
            font = self.font()
            font.setStrikeOut(value in self._struck)
            told = f"{text}\nCannot be used: {reason}" if reason else text
            muted = self.palette().placeholderText() if reason else None
            self.setItemData(place, font, Qt.ItemDataRole.FontRole)
            self.setItemData(place, tip(told), Qt.ItemDataRole.ToolTipRole)
            self.setItemData(place, told, Qt.ItemDataRole.AccessibleTextRole)
            self.setItemData(place, muted, Qt.ItemDataRole.ForegroundRole)

    def _room(self) -> int:
        """Pixels for the chosen name."""
        option = QStyleOptionComboBox()
        super().initStyleOption(option)
        box, text = QStyle.ComplexControl.CC_ComboBox, QStyle.SubControl.SC_ComboBoxEditField
        return self.style().subControlRect(box, option, text, self).width() - 2 * _MARGIN

    def initStyleOption(self, option: QStyleOptionComboBox) -> None:
        """Ends a name that has no room in an ellipsis."""
        super().initStyleOption(option)
        right = Qt.TextElideMode.ElideRight
        option.currentText = self.fontMetrics().elidedText(option.currentText, right, self._room())

    def showPopup(self) -> None:
        """Makes the list wide enough for its names, as far as the screen goes."""
        view = self.view()
        frame = view.width() - view.viewport().width()
        widest = view.sizeHintForColumn(0) + frame
        view.setMinimumWidth(min(widest, self.screen().availableGeometry().width()))
        super().showPopup()

    def event(self, event: QEvent) -> bool:
        """Tells the whole of a name that is cut off."""
        told = tells_whole(self, event, self.currentText(), room=self._room())
        return told or super().event(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leaves the wheel to the page."""
        event.ignore()
