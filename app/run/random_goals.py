"""What the figures of a bench of random weights should come to, and whether they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from app.run.events import Struct
from app.run.random_bench import RandomMeasured

Verdict = Literal["met", "not met", "not measured", ""]
"""How a figure stands to its goal; empty for a figure without one."""

NOT_MEASURED: Verdict = "not measured"


class Goal(Struct, frozen=True):
    """What a figure should come to."""

    words: str
    limit: float
    at_most: bool = False
    only: str = ""
    """For what it is a goal, where it is none for everything."""

    def of(self, value: float | None, *, applies: bool) -> tuple[str, Verdict]:
        """The goal in words, and how a value stands to it."""
        words = f"{self.words} ({self.only})" if self.only else self.words
        if value is None or not applies:
            return words, NOT_MEASURED
        met = value <= self.limit if self.at_most else value >= self.limit
        return words, "met" if met else "not met"


_LARGE = "llama-8b in nf4 on a graphics card"
GOALS: dict[str, Goal] = {
    "share_of_limit": Goal("60 % or more", 0.60, only=_LARGE),
    "over_generate": Goal("2× or more", 2.0, only=_LARGE),
    "wide_pass": Goal("1.3 or less", 1.3, at_most=True),
    "overhead_plain": Goal("5 % or less", 0.05, at_most=True),
    "overhead_simulated": Goal("5 % or less", 0.05, at_most=True),
    "simulated_speedup": Goal("2× or more", 2.0, only="α 0.75, γ 4"),
}
"""The goals by the names of their figures."""


def judged(name: str, value: float | None, found: RandomMeasured) -> tuple[str, Verdict]:
    """The goal of the figure of this name in words, and how its value stands to it; both empty
    where it has none.
    """
    if name not in GOALS:
        return "", ""
    return GOALS[name].of(value, applies=_APPLIES.get(name, _always)(found))


def _always(found: RandomMeasured) -> bool:
    return True


def _is_large(found: RandomMeasured) -> bool:
    """Whether it is the model, the precision and the kind of device that goals were set for."""
    wanted = found.wanted
    on_card = found.target.device.startswith("cuda")
    return (wanted.target, wanted.precision, on_card) == ("llama-8b", "nf4", True)


def _as_set(found: RandomMeasured) -> bool:
    return (found.wanted.acceptance, found.wanted.draft_length) == (0.75, 4)


_APPLIES: dict[str, Callable[[RandomMeasured], bool]] = {
    "share_of_limit": _is_large,
    "over_generate": _is_large,
    "simulated_speedup": _as_set,
}
