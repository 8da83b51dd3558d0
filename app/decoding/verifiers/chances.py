"""What rules ask of a draft and of the target's rows: laws of the guesses, and their chances."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from app.decoding.contracts import Draft, TargetRows, Verdict, row_at
from app.decoding.verifiers.branches import Walk


def guesses_of(draft: Draft, like: Tensor) -> Tensor:
    """The ids of the guesses [drafted], where `like` lies."""
    return draft.block.tensor().to(like.device)


def draft_laws(draft: Draft, like: Tensor) -> Tensor:
    """The law of each guess [drafted, width], in the type of `like` [drafted, width]; a guess that
    was certain is a point mass.
    """
    if draft.law is not None:
        return draft.law.to(like)
    return torch.zeros_like(like).scatter(1, guesses_of(draft, like)[:, None], 1.0)


def chances(laws: Tensor, draft: Draft) -> tuple[Tensor, Tensor]:
    """The probabilities [drafted] that target and draft gave to the guesses; `laws` are the
    target's [drafted + 1, width].
    """
    guesses = guesses_of(draft, laws)[:, None]
    p = deciding(laws, draft).gather(1, guesses).squeeze(1)
    if draft.law is None:
        return p, torch.ones_like(p)
    return p, draft.law.to(guesses.device).gather(1, guesses).squeeze(1)


def deciding(rows: Tensor, draft: Draft) -> Tensor:
    """Of the target's rows [drafted + 1, ...] the one that decides each guess: [drafted, ...]."""
    tree = draft.block.tree
    return rows[: len(draft)] if tree is None else rows[tree.parents + 1]


def kept_while_same(own: Tensor, draft: Draft, rows: TargetRows) -> Verdict:
    """The guesses that are the target's own tokens, up to the first that is not; that place's own
    token is the next one. `own` [drafted + 1] was drawn from the target's law at every place.
    """
    p, q = chances(rows.law, draft)
    same = same_as(own, draft)
    token = row_at(own, same.row)
    return replace(
        same.verdict(token),
        target_probability=p,
        draft_probability=q,
        next_probability=row_at(row_at(rows.law, same.row), token),
    )


@dataclass(frozen=True)
class SameTokens:
    """How far guesses are the tokens that they have to be."""

    row: Tensor
    """The target's row behind the last of them: []."""
    accepted: Tensor
    kept: Tensor | None = None
    tested: Tensor | None = None

    def verdict(self, token: Tensor) -> Verdict:
        """These guesses, with the token behind them."""
        return Verdict(self.accepted, token, kept=self.kept, tested=self.tested)


def same_as(own: Tensor, draft: Draft) -> SameTokens:
    """The guesses that are the target's `own` tokens [drafted + 1], up to the first that is not; of
    a tree, the longest way down.
    """
    matches = guesses_of(draft, own) == deciding(own, draft)
    if draft.block.tree is None:
        accepted = matches.long().cumprod(0).sum()
        return SameTokens(accepted, accepted)
    walk = Walk(draft.block.tree, matches)
    return SameTokens(walk.row, walk.accepted, walk.kept, walk.tested)


def strict_chances(draft: Draft, rows: TargetRows) -> Tensor:
    """The chance [drafted] with which the lossless rule would keep each guess: min(1, p/q), or at
    temperature 0 whether it is the target's likeliest token.
    """
    if rows.greedy:
        matches = guesses_of(draft, rows.best) == rows.best[: len(draft)]
        return matches.to(rows.logits.dtype)
    p, q = chances(rows.law, draft)
    return (p / q).clamp(max=1.0)
