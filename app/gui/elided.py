"""A label that gives way: where there is no room its text ends in an ellipsis, and is told whole on
hover.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QStyle, QStyleOption

from app.gui.whole_text import tell_whole


class Elided(QLabel):
    """One line of plain text that may be narrower than its text."""

    def __init__(self, text: str = "", *, tone: str = "") -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        if tone:
            self.setProperty("tone", tone)

    @property
    def is_cut(self) -> bool:
        """Whether the text has less room than it needs."""
        return self.fontMetrics().horizontalAdvance(self.text()) > self.width()

    def event(self, event: QEvent) -> bool:
        """Tells the whole of a text that is cut off."""
        if isinstance(event, QHelpEvent) and self.is_cut:
            tell_whole(self, self.text(), event.globalPos())
            return True
        return super().event(event)

    def minimumSizeHint(self) -> QSize:
        """As high as the text, and as narrow as need be."""
        return QSize(2 * self.fontMetrics().averageCharWidth(), super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paints as much of the text as there is room for."""
        painter = QPainter(self)
        option = QStyleOption()
        option.initFrom(self)
        self.style().drawPrimitive(QStyle.PrimitiveElement.PE_Widget, option, painter, self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        text = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
        painter.drawText(self.rect(), self.alignment(), text)
