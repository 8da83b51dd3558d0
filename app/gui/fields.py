"""Fields of the form: each gets and puts its value; and a row: a field with its name."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QLabel, QLineEdit

from app.gui.choice import Choice
from app.gui.lines_field import Lines
from app.gui.numbers import HIGHEST, Number, WholeNumber
from app.gui.path_field import PathField
from app.gui.plain import label, scaled_font, tip
from app.run.options import Option


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
    """A field with its name beside it, and what is said of it below; they hide together."""

    def __init__(self, name: str, field: Field, *, help_: str = "") -> None:
        self.field = field
        self.name: QLabel = label(name)
        self.name.setBuddy(field)
        self.said: QLabel | None = None
        """What is wrong with the number that was typed; None where none can be."""
        told = help_
        if isinstance(field, WholeNumber | Number):
            told = f"{help_}\nA number: {field.span}.".strip()
            self.said = label(tone="caution", wrap=True)
            scaled_font(self.said, 0.88)
            self.said.hide()
            field.corrected.connect(self._say)
        field.setAccessibleName(name)
        field.setAccessibleDescription(told)
        for part in (self.name, field):
            part.setToolTip(tip(f"{name}\n{told}") if told else "")

    def set_visible(self, shown: bool) -> None:
        """Shows or hides the row."""
        self.name.setVisible(shown)
        self.field.setVisible(shown)
        if self.said is not None:
            self.said.setVisible(shown and bool(self.said.text()))

    def _say(self, sentence: str) -> None:
        """Says below the field what is wrong; nothing takes no room."""
        assert self.said is not None
        self.said.setText(sentence)
        if self.said.parent() is not None:  # alone it would be a window
            self.said.setVisible(bool(sentence) and not self.field.isHidden())


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
