"""What speculation gains where every pass has its measured price."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.theory.formulas import expected_tokens, expected_tokens_by_position

Acceptance = float | Sequence[float]
"""One chance for all places of a draft, or the conditional chance at each place, first first."""


@dataclass(frozen=True)
class StepCosts:
    """Seconds of the parts of a round, as measured on one machine."""

    passes: Mapping[int, float] = field(hash=False)
    """T(width): seconds of a target pass by its rows; holds at least width 1."""
    rows: Mapping[int, int] | None = field(default=None, hash=False)
    """Rows of a pass by draft length, where guesses branch; None where each is a row, and the
    text's last token is one more.
    """
    draft_step: float = 0.0
    """t_d: seconds for one more guess."""
    overhead: float = 0.0
    """o: seconds of a speculative round that neither the draft nor the pass accounts for."""
    baseline_overhead: float = 0.0
    """The same for a token of the baseline."""
    idle: float = 0.0
    """The share of rounds in which the draft has nothing to guess, as an n-gram without a match."""

    def __post_init__(self) -> None:
        parts = (self.draft_step, self.overhead, self.baseline_overhead)
        if 1 not in self.passes or min(self.passes.values()) <= 0.0 or min(parts) < 0.0:
            raise ValueError("Costs are above zero, and a pass of one row is among them.")
        if not 0.0 <= self.idle <= 1.0:
            raise ValueError("A share lies from 0 to 1.")

    @property
    def single(self) -> float:
        """Seconds of a token of the baseline: a single step."""
        return self.passes[1] + self.baseline_overhead

    @property
    def draft_lengths(self) -> tuple[int, ...]:
        """The draft lengths whose pass was measured, shortest first; 0 is always among them."""
        if self.rows is None:
            return tuple(width - 1 for width in sorted(self.passes))
        known = (length for length, width in self.rows.items() if width in self.passes)
        return tuple(sorted({0, *known}))

    def verify(self, draft_length: int) -> float | None:
        """T: seconds of the pass over a whole draft of this length; None if not measured."""
        if self.rows is None or draft_length == 0:
            return self.passes.get(draft_length + 1)
        return self.passes.get(self.rows.get(draft_length, 0))

    def round_seconds(self, draft_length: int) -> float | None:
        """γ·t_d + T(γ + 1) + o, a mean with idle rounds of T(1) + o; None if not measured."""
        verify = self.verify(draft_length)
        if verify is None:
            return None
        guessed = draft_length * self.draft_step + verify
        return (1.0 - self.idle) * guessed + self.idle * self.passes[1] + self.overhead

    def round_tokens(self, tokens: float) -> float:
        """The mean tokens a round, if one with a draft brings so many; an idle one brings 1."""
        return (1.0 - self.idle) * tokens + self.idle


@dataclass(frozen=True)
class Expected:
    """What a draft length should bring."""

    draft_length: int
    tokens_per_loop: float
    speedup: float


def tokens_per_loop(acceptance: Acceptance, draft_length: int) -> float | None:
    """E[m] for either kind of acceptance; None for a draft longer than the places known."""
    if isinstance(acceptance, (int, float)):
        return expected_tokens(acceptance, draft_length)
    if draft_length > len(acceptance):
        return None
    return expected_tokens_by_position(acceptance[:draft_length])


def speedup(acceptance: Acceptance, draft_length: int, costs: StepCosts) -> float | None:
    """S = E[m]·(T(1) + o_baseline) / (γ·t_d + T(γ+1) + o), both means with idle rounds; 1 for a
    draft length of 0, which is not to speculate; None where width or place was not measured.
    """
    if draft_length == 0:
        return 1.0
    tokens, seconds = tokens_per_loop(acceptance, draft_length), costs.round_seconds(draft_length)
    if tokens is None or seconds is None:
        return None
    return costs.round_tokens(tokens) * costs.single / seconds


def break_even(draft_length: int, costs: StepCosts) -> float | None:
    """The acceptance at which speed-up is 1 for this draft length, by bisection of E[m], which
    grows with α from 1 to γ + 1; 0 where any will do; None where none will, or nothing is known.
    """
    seconds = costs.round_seconds(draft_length)
    if draft_length < 1 or seconds is None:
        return None
    needed = seconds / costs.single
    if needed <= 1.0:
        return 0.0
    if needed > costs.round_tokens(draft_length + 1):
        return None
    low, high = 0.0, 1.0
    while high - low > math.ulp(1.0):
        middle = (low + high) / 2
        enough = costs.round_tokens(expected_tokens(middle, draft_length)) >= needed
        low, high = (low, middle) if enough else (middle, high)
    return high


def expectations(acceptance: Acceptance, costs: StepCosts) -> tuple[Expected, ...]:
    """What every draft length brings whose costs are known, shortest first."""
    found = []
    for length in costs.draft_lengths:
        tokens, gain = tokens_per_loop(acceptance, length), speedup(acceptance, length, costs)
        if tokens is not None and gain is not None:
            found.append(Expected(length, costs.round_tokens(tokens), gain))
    return tuple(found)


def best_draft_length(acceptance: Acceptance, costs: StepCosts) -> Expected:
    """The draft length of the largest speed-up, the shortest of equals; a length of 0 means: do not
    speculate.
    """
    return max(expectations(acceptance, costs), key=lambda expected: expected.speedup)
