"""Warnings that go with a measured run: what they say, and what raises them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Literal

import msgspec

NOISY = 0.15
"""A range of more than this share of the median says that a machine was not quiet."""

FlagKind = Literal[
    "noisy",
    "one pair",
    "throttled",
    "battery",
    "other load",
    "slept",
    "offloaded",
    "coupled rows",
    "repeated text",
]
"""Why figures of a run are to be read with care."""

Reach = Literal["ratios", "times", "text", "guesses"]
"""The figures that a flag touches: speed-ups alone, all that was timed, all but plain times, or all
but those of the baseline.
"""


class Flag(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A warning that goes wherever the figures it touches go."""

    kind: FlagKind
    detail: str = ""
    """What was seen, as a clause: "the clock fell from 1980 to 1410 MHz"."""

    @property
    def message(self) -> str:
        """What a person is told: one sentence, and what was seen."""
        sentence = _MEANINGS[self.kind][0]
        return f"{sentence} ({self.detail})." if self.detail else f"{sentence}."

    @property
    def reach(self) -> Reach:
        """Which figures it touches."""
        return _MEANINGS[self.kind][1]


def relative_spread(values: Sequence[float]) -> float | None:
    """(largest - smallest) / median; None for fewer than two values or a median of zero."""
    middle = median(values) if values else 0.0
    return (max(values) - min(values)) / middle if len(values) > 1 and middle else None


def spread_flag(values: Sequence[float]) -> Flag | None:
    """The flag that the values of paired repetitions raise by how few or how far apart they are."""
    if len(values) == 1:
        return Flag("one pair")
    spread = relative_spread(values)
    if spread is None or spread <= NOISY:
        return None
    return Flag("noisy", f"their range is {100 * spread:.0f} % of the median")


_MEANINGS: dict[FlagKind, tuple[str, Reach]] = {
    "noisy": ("Noisy, do not trust: repetitions lie too far apart", "times"),
    "one pair": ("One pair, no spread: nothing says how far chance moves this figure", "ratios"),
    "throttled": ("The device lowered its clock while the run went on", "times"),
    "battery": ("The machine ran on its battery, which may slow it", "times"),
    "other load": ("Something else used the device while the run went on", "times"),
    "slept": ("The machine slept, or its clock was set, while the run went on", "times"),
    "offloaded": ("Part of a model lay outside the device's own memory", "times"),
    "coupled rows": (
        "The target's answers depend on the guesses beside them: the text is not exactly its own",
        "text",
    ),
    "repeated text": (
        "This run repeats what earlier ones wrote, and guesses are copied from that: new matter is "
        "slower",
        "guesses",
    ),
}
