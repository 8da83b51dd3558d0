"""Typical acceptance: keep what the target finds likely enough, the less sure it is the easier.

Source: Medusa, Cai et al. 2024 (arXiv 2401.10774), section 2.3.1, with the code's constants: a
guess is kept if p(x) > min(ε, δ·exp(-H(p))), p being the target's softmax at the temperature alone.
Nothing is drawn for it. The next token is drawn from the target's law, no draft ruled out.
"""

from __future__ import annotations

import torch

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict
from app.decoding.verifiers.chances import chances
from app.decoding.verifiers.lossy import lossy_verdict

_SMALL = 1e-5
"""Added to a probability before its logarithm is taken, as Medusa does."""


class Typical:
    """A lossy rule: `threshold` is ε, `delta` is δ."""

    name = "typical"

    def __init__(self, threshold: float, delta: float) -> None:
        self._threshold = threshold
        self._delta = delta

    def verify(self, draft: Draft, rows: TargetRows, draws: Draws) -> Verdict:
        """Decides without a draw; draws the next token from the target's law."""
        laws = rows.tempered
        p, _ = chances(laws, draft)
        entropy = -(laws * torch.log(laws + _SMALL)).sum(dim=-1)[: len(draft)]
        enough = (self._delta * torch.exp(-entropy)).clamp(max=self._threshold)
        kept = p > enough
        return lossy_verdict(
            draft, rows, draws, chance=kept.to(p.dtype), kept=kept, drawn=False, whole_law=True
        )
