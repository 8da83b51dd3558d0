"""What passes cost on this machine, as measured."""

from __future__ import annotations

import math

import msgspec

SMALLEST_BUCKET = 256
"""Contexts of up to so many tokens are measured as one."""


class CostKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What has to be equal for the cost of a pass to be the same."""

    model: str
    device: str
    """The hardware by name; for a processor with the number of threads."""
    precision: str
    attention: str
    """Name of the attention implementation."""
    context_bucket: int
    """Most tokens in the cache while the passes were measured (`bucket_of`)."""
    passes: str = ""
    """How passes were computed; empty for eager ones."""


class PassCosts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    passes: str = ""
    """How passes were computed; empty for eager ones."""

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
        return CostKey(
            self.model,
            self.device,
            self.precision,
            self.attention,
            self.context_bucket,
            self.passes,
        )

    @property
    def draft_ratio(self) -> float | None:
        """c: a step of the draft in single steps of the target (Leviathan et al. 2023, §3.3)."""
        return None if self.draft_step is None else self.draft_step / self.seconds[1]

    @property
    def single_steps(self) -> dict[int, float]:
        """T(width) / T(1) of every width that was measured, narrowest first."""
        return {width: self.seconds[width] / self.seconds[1] for width in sorted(self.seconds)}

    def in_single_steps(self, width: int) -> float | None:
        """T(width) / T(1); None for a width that was not measured."""
        found = self.seconds.get(width)
        return None if found is None else found / self.seconds[1]


class MethodCosts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What passes and guesses cost for one method, or why that is not known."""

    costs: PassCosts | None
    missing: str = ""
    """Why there are none, a clause; empty where there are."""


def bucket_of(context: int) -> int:
    """The context bucket of so many tokens: the next power of two, 256 at least."""
    return max(SMALLEST_BUCKET, 1 << (context - 1).bit_length()) if context > 0 else SMALLEST_BUCKET
