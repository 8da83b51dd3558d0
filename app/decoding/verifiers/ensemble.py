"""A static ensemble: the text follows a fixed mixture of target and draft.

Source: transformers' `assistant_ensemble_weight`; DIVERSED (arXiv 2604.07622). A guess is kept with
probability min(1, 1 - w + w·p/q) and replaced as in the exact rule, so that a token follows exactly
w·p + (1 - w)·q. At temperature 0 it is kept if the mixture's likeliest token is the guess, the
draft's law then being certain of it. The token behind a draft that was kept whole follows p.
"""

from __future__ import annotations

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict
from app.decoding.verifiers.chances import chances
from app.decoding.verifiers.lossy import lossy_verdict


class Ensemble:
    """A lossy rule: `weight` w, in (0, 1), is the target's share of the mixture."""

    name = "ensemble"

    def __init__(self, weight: float) -> None:
        self._weight = weight

    def verify(self, draft: Draft, rows: TargetRows, draws: Draws) -> Verdict:
        """Decides by `draws.accept`, left to right, and draws the next token as the exact rule."""
        p, q = chances(rows.probabilities, draft)
        guessed = 1.0 - self._weight
        if rows.greedy:
            best = rows.probabilities[: len(draft)].amax(dim=-1)
            chance = (guessed + self._weight * p >= self._weight * best).to(p.dtype)
        else:
            chance = (guessed + self._weight * p / q).clamp(max=1.0)
        return lossy_verdict(draft, rows, draws, chance=chance, drawn=not rows.greedy)
