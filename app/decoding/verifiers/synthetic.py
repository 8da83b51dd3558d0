"""Synthetic acceptance: guesses are kept at given rates, whatever they are.

For measuring a system as if a draft were this good (vLLM's `rejection_sample_method: synthetic`);
the text is nobody's. A guess at place i is kept with r_i / r_(i-1), r_i being the wanted share of
drafts that keep at least i guesses.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict
from app.decoding.verifiers.lossy import lossy_verdict
from app.models.machine import on_device


class Synthetic:
    """A lossy rule: `rates` r_1, r_2, … never rise; behind the last of them nothing is kept."""

    name = "synthetic"

    def __init__(self, rates: Sequence[float]) -> None:
        before = [1.0, *rates]
        self._chances = [
            now / last if last > 0 else 0.0 for last, now in zip(before, rates, strict=False)
        ]

    def verify(self, draft: Draft, rows: TargetRows, draws: Draws) -> Verdict:
        """Decides by `draws.accept`, left to right, and draws the next token as the exact rule."""
        missing = [0.0] * max(len(draft) - len(self._chances), 0)
        values = [*self._chances, *missing][: len(draft)]
        chance = on_device(values, draws.accept.dtype, rows.logits.device)
        return lossy_verdict(draft, rows, draws, chance=chance)
