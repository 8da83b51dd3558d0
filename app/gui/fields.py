"""Fields of the form: each gets and puts its value, and none is changed by a wheel passing by."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QDoubleSpinBox,
    QLabel,
    QLineEdit,
    QSpinBox,
)

from app.gui.choice import Choice
from app.gui.lines_field import Lines
from app.gui.path_field import PathField
from app.gui.plain import label, tip
from app.run.options import Option

HIGHEST = 2_147_483_647
"""The largest number a whole-number field can hold."""


class WholeNumber(QSpinBox):
    """A whole number; the wheel changes it only while it has the keyboard."""

    edited = Signal()

    def __init__(self, low: int, high: int, *, value: int, nothing: str = "") -> None:
        super().__init__()
        _dress_number(self)
        self.setRange(low, high)
        self.setValue(value)
        self.setSpecialValueText(nothing)
        self.valueChanged.connect(self.edited)

    def get(self) -> Any:
        """The number."""
        return self.value()

    def put(self, value: Any) -> None:
        """Shows this number."""
        self.setValue(value)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leaves the wheel to the page, unless this field has the keyboard."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class Number(QDoubleSpinBox):
    """A number with a fraction; the wheel changes it only while it has the keyboard."""

    edited = Signal()

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
        self.valueChanged.connect(self.edited)

    def get(self) -> Any:
        """The number."""
        return self.value()

    def put(self, value: Any) -> None:
        """Shows this number."""
        self.setValue(value)

    def textFromValue(self, value: float) -> str:
        """The value without needless zeros, as the person's country writes it."""
        return self.locale().toString(value, "g", 6)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leaves the wheel to the page, unless this field has the keyboard."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class Flag(QCheckBox):
    """Yes or no."""

    edited = Signal()

    def __init__(self, value: bool) -> None:
        super().__init__()
        self.setChecked(value)
        self.toggled.connect(self.edited)

    def get(self) -> Any:
        """Whether it is on."""
        return self.isChecked()

    def put(self, value: Any) -> None:
        """Turns it on or off."""
        self.setChecked(value)


class Words(QLineEdit):
    """A short text in one line."""

    edited = Signal()

    def __init__(self, value: str) -> None:
        super().__init__()
        self.put(value)
        self.editingFinished.connect(self.edited)

    def get(self) -> Any:
        """The text."""
        return self.text().strip()

    def put(self, value: Any) -> None:
        """Shows this text."""
        self.setText(value)


Field = WholeNumber | Number | Choice | Flag | Words | Lines | PathField
"""What stands in a row: it has `get`, `put` and `edited`."""


class Row:
    """A field with its name beside it; both hide together."""

    def __init__(self, name: str, field: Field, *, help_: str = "") -> None:
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


def option_field(option: Option) -> Field:
    """A field for an option that a method or a rule declares."""
    low = option.low if option.low is not None else -HIGHEST
    high = option.high if option.high is not None else HIGHEST
    if option.choices:
        return Choice((word, word) for word in option.choices)
    match option.default:
        case bool():
            return Flag(option.default)
        case int():
            return WholeNumber(int(low), int(high), value=option.default)
        case float():
            return Number(low, high, value=option.default)
        case str():
            return Words(option.default)


def _dress_number(field: QAbstractSpinBox) -> None:
    field.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
    field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    field.setKeyboardTracking(False)
    field.setCorrectionMode(QAbstractSpinBox.CorrectionMode.CorrectToNearestValue)
