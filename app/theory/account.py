"""Does the measured time add up, and what should a run bring before it has begun?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.theory.costs import (
    Acceptance,
    StepCosts,
    best_draft_length,
    break_even,
    speedup,
    tokens_per_loop,
)

WITHIN = 0.10
"""A measured time adds up when it lies within this share of the accounted one."""


@dataclass(frozen=True)
class Account:
    """The seconds that both lanes should have taken for the rounds that there were."""

    speculative_seconds: float
    """Σ over rounds of t_draft + T(width) + o."""
    baseline_seconds: float
    """M·(T(1) + o_baseline) for the same M tokens."""

    @property
    def speedup(self) -> float | None:
        """Baseline / speculative seconds; None for no round."""
        if not self.speculative_seconds:
            return None
        return self.baseline_seconds / self.speculative_seconds

    def unexplained(self, measured_seconds: float) -> float | None:
        """The share by which the speculative lane really took longer (below 0: less long)."""
        if not self.speculative_seconds:
            return None
        return measured_seconds / self.speculative_seconds - 1.0

    def adds_up(self, measured_seconds: float, *, within: float = WITHIN) -> bool | None:
        """Whether the measured seconds of the speculative lane are the accounted ones."""
        share = self.unexplained(measured_seconds)
        return None if share is None else abs(share) <= within


def account(
    widths: Sequence[int], draft_seconds: Sequence[float], *, committed: int, costs: StepCosts
) -> Account | None:
    """The account of a lane's rounds: the rows of each one's pass, the seconds of each one's
    drafting, and M, the tokens that all of them committed; None where a width was not measured.
    """
    known = [costs.passes.get(width) for width in widths]
    passes = [seconds for seconds in known if seconds is not None]
    if len(passes) < len(known):
        return None
    rounds = zip(draft_seconds, passes, strict=True)
    return Account(
        speculative_seconds=sum(draft + verify + costs.overhead for draft, verify in rounds),
        baseline_seconds=committed * costs.single,
    )


@dataclass(frozen=True)
class Prediction:
    """What a run should bring, from an acceptance and the costs alone."""

    draft_length: int
    tokens_per_loop: float | None
    speedup: float | None
    break_even: float | None
    """The acceptance at which this draft length would gain nothing; None where none would do."""
    best_draft_length: int
    """0: do not speculate."""
    best_speedup: float


def prediction(acceptance: Acceptance, draft_length: int, *, costs: StepCosts) -> Prediction:
    """What this acceptance and draft length should bring; None stands for what was not measured.

    Acceptance counted on given text promises too much: real rounds begin anew at hard tokens.
    """
    best = best_draft_length(acceptance, costs)
    tokens = tokens_per_loop(acceptance, draft_length)
    return Prediction(
        draft_length=draft_length,
        tokens_per_loop=None if tokens is None else costs.round_tokens(tokens),
        speedup=speedup(acceptance, draft_length, costs),
        break_even=break_even(draft_length, costs),
        best_draft_length=best.draft_length,
        best_speedup=best.speedup,
    )
