"""What rules ask of a draft and of the target's rows: laws of the guesses, and their chances."""

from __future__ import annotations

import torch
from torch import Tensor

from app.decoding.contracts import Draft, TargetRows, Verdict, row_at


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
    p = laws[: len(draft)].gather(1, guesses).squeeze(1)
    if draft.law is None:
        return p, torch.ones_like(p)
    return p, draft.law.to(guesses.device).gather(1, guesses).squeeze(1)


def kept_while_same(own: Tensor, draft: Draft, rows: TargetRows) -> Verdict:
    """The guesses that are the target's own tokens, up to the first that is not; that place's own
    token is the next one. `own` [drafted + 1] was drawn from the target's law at every place.
    """
    matches = guesses_of(draft, own) == own[: len(draft)]
    accepted = matches.long().cumprod(0).sum()
    token = row_at(own, accepted)
    p, q = chances(rows.law, draft)
    return Verdict(
        accepted=accepted,
        next=token,
        target_probability=p,
        draft_probability=q,
        next_probability=row_at(row_at(rows.law, accepted), token),
    )


def strict_chances(draft: Draft, rows: TargetRows) -> Tensor:
    """The chance [drafted] with which the lossless rule would keep each guess: min(1, p/q), or at
    temperature 0 whether it is the target's likeliest token.
    """
    if rows.greedy:
        matches = guesses_of(draft, rows.best) == rows.best[: len(draft)]
        return matches.to(rows.logits.dtype)
    p, q = chances(rows.law, draft)
    return (p / q).clamp(max=1.0)
