"""Fields for numbers: one outside the limits is set to the nearest within, and that is said."""

from __future__ import annotations

import math
import sys
from typing import Any

from PySide6.QtCore import Qt, Signal, SignalInstance
from PySide6.QtGui import QValidator, QWheelEvent
from PySide6.QtWidgets import QAbstractSpinBox, QDoubleSpinBox, QSpinBox

from app.run.limits import limit_words, span_words

HIGHEST = 2_147_483_647
"""The largest number a whole-number field can hold."""

_DECIMALS = 3


class _Typed:
    """What both kinds of fields do with what is typed; goes before the Qt class that it extends."""

    edited: SignalInstance
    corrected: SignalInstance
    """What was typed lies outside the limits: a sentence; empty once that is past."""
    span: str
    """What may be typed, in words."""
    _outside = False

    def _dress(self: Any) -> None:
        """As every field for numbers looks and acts."""
        self.setButtonSymbols(QAbstractSpinBox.ButtonSymbols.NoButtons)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setKeyboardTracking(False)
        self.setCorrectionMode(QAbstractSpinBox.CorrectionMode.CorrectToNearestValue)
        self.valueChanged.connect(self.edited)
        self.lineEdit().textEdited.connect(lambda _text: self.corrected.emit(""))

    def get(self: Any) -> Any:
        """The number."""
        return self.value()

    def put(self: Any, value: Any) -> None:
        """Shows this number."""
        self.setValue(value)
        self.corrected.emit("")

    def settle(self: Any) -> bool:
        """Takes what is typed; False if that lay outside the limits, which is said then."""
        self._outside = False
        self.interpretText()
        return not self._outside

    def validate(self: Any, text: str, place: int) -> object:
        """Lets any number be typed, until it is taken."""
        number = self._typed(text)
        outside = number is not None and not self.minimum() <= number <= self.maximum()
        if outside or text.strip() in ("-", "+"):
            return QValidator.State.Intermediate
        return super().validate(text, place)  # type: ignore[misc]

    def fixup(self: Any, text: str) -> str:
        """The nearest number within the limits."""
        number = self._typed(text)
        if number is None:
            return str(self.text())
        self._outside = True
        low, high = self.minimum(), self.maximum()
        self.corrected.emit(_sentence(text, number, low, high))
        return str(self.textFromValue(min(max(number, low), high)))

    def wheelEvent(self: Any, event: QWheelEvent) -> None:
        """Leaves the wheel to the page, unless this field has the keyboard."""
        if self.hasFocus():
            super().wheelEvent(event)  # type: ignore[misc]
        else:
            event.ignore()


class WholeNumber(_Typed, QSpinBox):
    """A whole number; the wheel changes it only while it has the keyboard."""

    edited = Signal()
    corrected = Signal(str)

    def __init__(self, low: int, high: int, *, value: int, nothing: str = "") -> None:
        super().__init__()
        self.setRange(low, high)
        self.setValue(value)
        self.setSpecialValueText(nothing)
        self.span = span_words(low, high)
        self._dress()

    def textFromValue(self, value: int) -> str:
        """The value in digits alone, which can be typed again."""
        return str(value)

    def _typed(self, text: str) -> int | None:
        try:
            return int(text)
        except ValueError:
            return None


class Number(_Typed, QDoubleSpinBox):
    """A number with a fraction; the wheel changes it only while it has the keyboard."""

    edited = Signal()
    corrected = Signal(str)

    def __init__(
        self,
        low: float,
        high: float,
        *,
        value: float,
        step: float = 0.05,
        nothing: str = "",
        low_open: bool = False,
    ) -> None:
        """With `low_open` the number has to be more than `low`."""
        super().__init__()
        self.setDecimals(_DECIMALS)
        least = low + 10.0**-_DECIMALS if low_open else low
        self.setRange(least, sys.float_info.max if math.isinf(high) else high)
        self.setSingleStep(step)
        self.setValue(value)
        self.setSpecialValueText(nothing)
        self.span = span_words(low, high, low_open=low_open)
        self._dress()

    def textFromValue(self, value: float) -> str:
        """The value without needless zeros, as the person's country writes it."""
        return self.locale().toString(value, "g", 6)

    def _typed(self, text: str) -> float | None:
        number, known = self.locale().toDouble(text.strip())
        return number if known and math.isfinite(number) else None


def _sentence(typed: str, number: float, low: float, high: float) -> str:
    """What the limit is, and what was typed."""
    limit = f"At most {limit_words(high)}" if number > high else f"At least {limit_words(low)}"
    return f"{limit}; {typed.strip()} was typed."
