"""Between which numbers a setting lies: checked when it is used, and told where it is asked for."""

from __future__ import annotations

import math

import msgspec

from app.run.problems import Problem


class Limit(msgspec.Struct, frozen=True):
    """The numbers that a setting may be."""

    name: str
    low: float
    high: float
    hint: str
    """What some number of them means."""
    low_open: bool = False
    """Whether it has to be more than `low`."""

    def check(self, value: float) -> None:
        """Raises Problem unless `value` is a finite number within the limits."""
        enough = value > self.low if self.low_open else value >= self.low
        finite = isinstance(value, int) or math.isfinite(value)  # a huge int is no float
        if not (finite and enough and value <= self.high):
            span = span_words(self.low, self.high, low_open=self.low_open)
            raise Problem(
                f"{self.name} is {value!r}; it has to be {span}.", f"Set it anew ({self.hint})."
            )


def span_words(low: float, high: float, *, low_open: bool = False) -> str:
    """What lies between two limits, in words."""
    words = f"above {limit_words(low)}" if low_open else f"{limit_words(low)} or more"
    return words if math.isinf(high) else f"{words}, at most {limit_words(high)}"


def limit_words(number: float) -> str:
    """A limit in full: no power of ten."""
    return str(number) if isinstance(number, int) else f"{number:g}"
