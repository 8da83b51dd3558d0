"""Speculative sampling: keep a guess with probability min(1, p/q), else draw from what q left over.

Source: Leviathan, Kalman, Matias 2023 (arXiv 2211.17192), algorithm 1; Chen et al. 2023
(arXiv 2302.01318), algorithm 2. The output follows the target's law exactly, for any q that is
the law the guesses were really drawn from.
"""

from __future__ import annotations

import torch
from torch import Tensor

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict, row_at
from app.decoding.sampling import pick
from app.decoding.verifiers.branches import Walk, branch_chances, left_over
from app.decoding.verifiers.chances import chances
from app.models.tree import Tree


class Exact:
    """The lossless rule for drawing: token by token, left to right."""

    name = "exact"

    def verify(self, draft: Draft, rows: TargetRows, draws: Draws) -> Verdict:
        """Decides by `draws.accept`, left to right, and draws the next token by `draws.next`."""
        p, q = chances(rows.law, draft)
        if draft.block.tree is not None:
            return _of_branches(draft.block.tree, draft, rows, draws, p=p, q=q)
        kept = draws.accept * q < p
        accepted = kept.long().cumprod(0).sum()
        p_next = row_at(rows.law, accepted)
        law = residual(p_next, draft, accepted)
        token = pick(law, draws.next)
        return Verdict(
            accepted=accepted,
            next=token,
            target_probability=p,
            draft_probability=q,
            accept_probability=(p / q).clamp(max=1.0),
            draw=draws.accept,
            next_probability=row_at(p_next, token),
            next_law=law,
        )


def _of_branches(
    tree: Tree, draft: Draft, rows: TargetRows, draws: Draws, *, p: Tensor, q: Tensor
) -> Verdict:
    """The same for guesses that branch: at each guess its children in order, each certain."""
    chance = branch_chances(rows.law, draft, tree)
    walk = Walk(tree, draws.accept < chance)
    p_next = row_at(rows.law, walk.row)
    law = left_over(p_next, draft, tree, walk.row)
    token = pick(law, draws.next)
    return Verdict(
        accepted=walk.accepted,
        next=token,
        kept=walk.kept,
        tested=walk.tested,
        target_probability=p,
        draft_probability=q,
        accept_probability=chance,
        draw=draws.accept,
        next_probability=row_at(p_next, token),
        next_law=law,
    )


def residual(p: Tensor, draft: Draft, place: Tensor) -> Tensor:
    """The law [width] of the token behind `place` accepted guesses, p [width] being the target's.

    norm(max(p - q, 0)) behind a rejection, p itself behind the last guess. Where p and q are equal
    but for rounding nothing is left over, and p is the answer.
    """
    drafted = len(draft)
    if drafted == 0:
        return p
    inside = place.clamp(max=drafted - 1)
    if draft.law is None:
        guess = row_at(draft.block.tensor(), inside)
        q = torch.zeros_like(p).scatter(0, guess.reshape(1), 1.0)
    else:
        q = row_at(draft.law.to(p.dtype), inside)
    left = (p - q).clamp(min=0.0)
    left = torch.where(place < drafted, left, p)
    total = left.sum()
    return torch.where(total > 0, left / total, p)
