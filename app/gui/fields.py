"""Fields of the form: numbers that no stray wheel changes, choices, and rows that can hide."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QLabel,
    QSpinBox,
    QWidget,
)

from app.gui.plain import label, tip
from app.run.methods import Option
from app.run.settings import OptionValue

HIGHEST = 2_147_483_647
"""The largest number a whole-number field can hold."""


class WholeNumber(QSpinBox):
    """A whole number; the wheel changes it only while it has the keyboard."""

    def __init__(self, low: int, high: int, *, value: int, nothing: str = "") -> None:
        super().__init__()
        _dress_number(self)
        self.setRange(low, high)
        self.setValue(value)
        self.setSpecialValueText(nothing)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leaves the wheel to the page, unless this field has the keyboard."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class Number(QDoubleSpinBox):
    """A number with a fraction; the wheel changes it only while it has the keyboard."""

    def __init__(
        self, low: float, high: float, *, value: float, step: float = 0.05, nothing: str = ""
    ) -> None:
        super().__init__()
        _dress_number(self)
        self.setDecimals(3)
        self.setRange(low, high)
        self.setSingleStep(step)
        self.setValue(value)
        self.setSpecialValueText(nothing)

    def textFromValue(self, value: float) -> str:
        """The value without needless zeros, as the person's country writes it."""
        return self.locale().toString(value, "g", 6)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leaves the wheel to the page, unless this field has the keyboard."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class Choice(QComboBox):
    """One of several names, each with a value; the wheel does not change it."""

    def __init__(self, offers: Iterable[tuple[str, object]] = ()) -> None:
        super().__init__()
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(8)
        self.offer(offers)

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
            self.setItemData(self.count() - 1, tip(text), Qt.ItemDataRole.ToolTipRole)
        self.choose(chosen)
        self.blockSignals(False)

    def choose(self, value: object) -> None:
        """Chooses the offer with this value, or the first."""
        index = next((i for i in range(self.count()) if self.itemData(i) == value), 0)
        self.setCurrentIndex(index)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leaves the wheel to the page."""
        event.ignore()


class Row:
    """A field with its name beside it; both hide together."""

    def __init__(self, name: str, field: QWidget, *, help_: str = "") -> None:
        self.field = field
        self.name: QLabel = label(name)
        self.name.setBuddy(field)
        field.setAccessibleName(name)
        field.setAccessibleDescription(help_)
        for part in (self.name, field):
            part.setToolTip(tip(f"{name}\n{help_}") if help_ else "")

    def set_visible(self, shown: bool) -> None:
        """Shows or hides the row."""
        self.name.setVisible(shown)
        self.field.setVisible(shown)


def option_field(option: Option) -> QWidget:
    """A field for an option that a method declares."""
    if isinstance(option.default, bool):
        box = QCheckBox()
        box.setChecked(option.default)
        return box
    low = option.low if option.low is not None else -HIGHEST
    high = option.high if option.high is not None else HIGHEST
    if isinstance(option.default, int):
        return WholeNumber(int(low), int(high), value=option.default)
    if isinstance(option.default, float):
        return Number(low, high, value=option.default)
    raise TypeError(f"no field for the option {option.name}")


def field_value(field: QWidget) -> OptionValue:
    """What a field made by `option_field` holds."""
    if isinstance(field, QCheckBox):
        return field.isChecked()
    if isinstance(field, (WholeNumber, Number)):
        return field.value()
    raise TypeError(f"no value in {field}")


def set_field_value(field: QWidget, value: OptionValue) -> None:
    """Puts a value into a field made by `option_field`."""
    if isinstance(field, QCheckBox):
        field.setChecked(bool(value))
    elif isinstance(field, WholeNumber):
        field.setValue(int(value))
    elif isinstance(field, Number):
        field.setValue(float(value))


def _dress_number(field: QAbstractSpinBox) -> None:
    field.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
    field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    field.setKeyboardTracking(False)
    field.setCorrectionMode(QAbstractSpinBox.CorrectionMode.CorrectToNearestValue)
