"""Lenience: the draft may be too sure of itself by a factor of 1/l.

Source: Leviathan et al. 2023 (arXiv 2211.17192), appendix A.5: keep a guess with probability
min(1, p / (l·q)); no token then comes more than 1/l times as often as the target would have it. At
temperature 0 a guess is kept if it is at least l times as likely as the likeliest token.
"""

from __future__ import annotations

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict
from app.decoding.verifiers.chances import chances
from app.decoding.verifiers.lossy import lossy_verdict


class Lenience:
    """A lossy rule: the exact one with q made smaller; `lenience` is l, in (0, 1]."""

    name = "lenience"

    def __init__(self, lenience: float) -> None:
        self._lenience = lenience

    def verify(self, draft: Draft, rows: TargetRows, draws: Draws) -> Verdict:
        """Decides by `draws.accept`, left to right, and draws the next token as the exact rule."""
        p, q = chances(rows.probabilities, draft)
        if rows.greedy:
            best = rows.probabilities[: len(draft)].amax(dim=-1)
            chance = (p >= self._lenience * best).to(p.dtype)
        else:
            chance = (p / (self._lenience * q)).clamp(max=1.0)
        return lossy_verdict(draft, rows, draws, chance=chance, drawn=not rows.greedy)
