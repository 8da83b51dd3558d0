"""What passes cost on this machine, as measured, and the flags that a measured run can raise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Literal

from app.run.events import Struct
from app.run.figures import FIGURES

SMALLEST_BUCKET = 256
"""Contexts of up to so many tokens are measured as one."""

NOISY = 0.15
"""A range of more than this share of the median says that a machine was not quiet."""


class CostKey(Struct, frozen=True):
    """What has to be equal for the cost of a pass to be the same."""

    model: str
    device: str
    """The hardware by name; for a processor with the number of threads."""
    precision: str
    attention: str
    """Name of the attention implementation."""
    context_bucket: int
    """Most tokens in the cache while the passes were measured (`bucket_of`)."""


class PassCosts(Struct, frozen=True):
    """Seconds of a target pass by its width in rows, and of a step of the draft: medians.

    Raises ValueError for what cannot have been measured, msgspec.ValidationError when decoded.
    """

    model: str
    device: str
    precision: str
    attention: str
    context_bucket: int
    seconds: dict[int, float]
    """By width, from 1 up to the longest draft and one."""
    repeats: int
    """Passes behind each median."""
    draft: str | None = None
    """The draft model; null for a method without one."""
    draft_step: float | None = None
    """Seconds for one more guess; null where a guess has no step of its own to measure."""
    draft_prompt_per_token: float | None = None
    """Seconds of the draft's own pass over the prompt, a token of the prompt."""

    def __post_init__(self) -> None:
        if 1 not in self.seconds:
            raise ValueError("The cost of a pass of one row is missing.")
        if min(self.seconds) < 1:
            raise ValueError("A pass has at least one row.")
        if self.repeats < 1 or self.context_bucket < 1:
            raise ValueError("Repeats and context are 1 or more.")
        if not all(math.isfinite(cost) and cost > 0 for cost in self.seconds.values()):
            raise ValueError("A pass takes a finite time above zero.")
        for cost in (self.draft_step, self.draft_prompt_per_token):
            if cost is not None and not (math.isfinite(cost) and cost >= 0):
                raise ValueError("A step of the draft takes a finite time.")

    @property
    def key(self) -> CostKey:
        """What these costs hold for."""
        return CostKey(self.model, self.device, self.precision, self.attention, self.context_bucket)

    @property
    def longest_draft(self) -> int:
        """The longest draft whose pass was measured, in tokens."""
        return max(self.seconds) - 1

    @property
    def draft_ratio(self) -> float | None:
        """c: a step of the draft in single steps of the target (Leviathan et al. 2023, §3.3)."""
        return None if self.draft_step is None else self.draft_step / self.seconds[1]

    def in_single_steps(self, width: int) -> float | None:
        """T(width) / T(1); None for a width that was not measured."""
        found = self.seconds.get(width)
        return None if found is None else found / self.seconds[1]


def bucket_of(context: int) -> int:
    """The context bucket of so many tokens: the next power of two, 256 at least."""
    return max(SMALLEST_BUCKET, 1 << (context - 1).bit_length()) if context > 0 else SMALLEST_BUCKET


FlagKind = Literal[
    "noisy", "one pair", "throttled", "battery", "other load", "offloaded", "coupled rows"
]
"""Why figures of a run are to be read with care."""


class Flag(Struct, frozen=True):
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
    def figures(self) -> tuple[str, ...]:
        """Names (in `app.run.figures`) of the figures that it touches."""
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


_RATIOS = ("decode_speedup", "request_speedup")
_TIMED = tuple(name for name, figure in FIGURES.items() if figure.unit in ("×", "s", "tokens/s"))
_OF_THE_TEXT = ("acceptance_rate", "conditional_acceptance", "mean_accepted_prefix")

_MEANINGS: dict[FlagKind, tuple[str, tuple[str, ...]]] = {
    "noisy": ("Noisy, do not trust: repetitions lie too far apart", _TIMED),
    "one pair": ("One pair, no spread: nothing says how far chance moves this figure", _RATIOS),
    "throttled": ("The device lowered its clock while the run went on", _TIMED),
    "battery": ("The machine ran on its battery, which may slow it", _TIMED),
    "other load": ("Something else used the device while the run went on", _TIMED),
    "offloaded": ("Part of a model lay outside the device's own memory", _TIMED),
    "coupled rows": (
        "The target's answers depend on the guesses beside them: the text is not exactly its own",
        (*_RATIOS, *_OF_THE_TEXT, "tokens_per_loop"),
    ),
}
