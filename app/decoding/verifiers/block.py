"""Block verification: the guesses of a draft are decided together, and more of them are kept.

Source: Sun et al. 2024 (arXiv 2403.10444), algorithm 2. The output follows the target's law
exactly; in the mean at least as many guesses are kept as token by token.
"""

from __future__ import annotations

import torch
from torch import Tensor

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict, row_at
from app.decoding.sampling import pick
from app.decoding.verifiers.chances import chances, draft_laws


class BlockVerification:
    """The lossless rule that looks at the whole draft before it cuts it."""

    name = "block"

    def verify(self, draft: Draft, rows: TargetRows, draws: Draws) -> Verdict:
        """Keeps the longest start of the draft whose own draw allows it; the guesses before it are
        kept with it, whatever theirs say.
        """
        p, q = chances(rows.law, draft)
        weights = self.weights(p / q)
        left_over = self.left_over(draft, rows.law, weights)
        keep = _keep_chances(weights, left_over.sum(dim=-1))
        places = torch.arange(len(draft) + 1, device=p.device)
        allowed = torch.cat([places[:1] == 0, draws.accept < keep])
        accepted = torch.where(allowed, places, 0).amax()
        p_next = row_at(rows.law, accepted)
        law = self._next_law(left_over, p_next, accepted)
        token = pick(law, draws.next)
        return Verdict(
            accepted=accepted,
            next=token,
            target_probability=p,
            draft_probability=q,
            accept_probability=keep,
            draw=draws.accept,
            next_probability=row_at(p_next, token),
            next_law=law,
        )

    def weights(self, ratios: Tensor) -> Tensor:
        """P_0 … P_K [drafted + 1]: P_0 is 1, then P_i = min(1, P_(i-1) · p/q)."""
        weights = [ratios.new_ones(1)]
        for place in range(len(ratios)):
            weights.append((weights[-1] * ratios[place : place + 1]).clamp(max=1.0))
        return torch.cat(weights)

    def left_over(self, draft: Draft, laws: Tensor, weights: Tensor) -> Tensor:
        """max(P_i · p - q, 0) at each place of the draft: [drafted, width]."""
        p = laws[: len(draft)]
        return (weights[:-1, None] * p - draft_laws(draft, p)).clamp(min=0.0)

    def _next_law(self, left_over: Tensor, p: Tensor, place: Tensor) -> Tensor:
        """What is left over behind `place` guesses, normalised; p itself behind the last, and where
        nothing is left over but for rounding.
        """
        if not len(left_over):
            return p
        left = row_at(left_over, place.clamp(max=len(left_over) - 1))
        left = torch.where(place < len(left_over), left, p)
        total = left.sum()
        return torch.where(total > 0, left / total, p)


def _keep_chances(weights: Tensor, masses: Tensor) -> Tensor:
    """h_1 … h_K [drafted], of P_0 … P_K and the mass left over at each place [drafted]."""
    inner, mass = weights[1:-1], masses[1:]
    below = mass + 1.0 - inner
    inside = torch.where(below > 0, mass / below, torch.ones_like(mass))
    return torch.cat([inside, weights[1:][-1:]])
