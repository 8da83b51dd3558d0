"""How guesses are taken where a session makes a whole chain of them: each as one by one.

What follows from the run's seed, its text or its penalties is no part of it: two lanes that take
guesses alike have equal ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from app.decoding.contracts import row_at
from app.decoding.sampling import pick, warp
from app.models.pair import DraftWidths
from app.models.picking import Picked
from app.models.vocabulary_bridge import SharedIds, VocabularyBridge
from app.run.settings import Sampling


def law_of(sampling: Sampling) -> Sampling:
    """These settings as far as the law depends on them that a row of logits stands for."""
    return Sampling(
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        min_p=sampling.min_p,
    )


def shared_scores(logits: Tensor, widths: DraftWidths) -> Tensor:
    """A draft model's logits [rows, its width] as scores in the target's ids [rows, target width],
    in fp32; ids that are not shared have none.
    """
    ids = min(widths.shared_ids, logits.shape[-1])
    whole = logits.new_full((len(logits), widths.target_width), -torch.inf, dtype=torch.float32)
    whole[:, :ids] = logits[:, :ids].float()
    return whole


def translated_scores(logits: Tensor, shared: SharedIds, width: int) -> Tensor:
    """The same [width] of a row of a draft model with another vocabulary."""
    known = logits.index_select(0, shared.draft).float()
    whole = logits.new_full((1, width), -torch.inf, dtype=torch.float32)
    return whole.index_copy_(1, shared.target, known[None])[0]


def spread(law: Tensor, ids: Tensor, width: int) -> Tensor:
    """The law [vocabulary] over a head's tokens as one over the target's ids, [width]."""
    return law.new_zeros(width).index_copy_(0, ids, law)


@dataclass(frozen=True, slots=True)
class DraftPicking:
    """From a draft model of the target's vocabulary."""

    sampling: Sampling
    widths: DraftWidths

    @property
    def draws(self) -> bool:
        """As `Picking.draws`."""
        return not self.sampling.greedy

    def pick(self, logits: Tensor, draw: Tensor) -> Picked:
        """As `Picking.pick`."""
        return _picked(shared_scores(logits[None], self.widths)[0], self.sampling, draw)

    def fed(self, token: Tensor) -> Tensor:
        """The same id."""
        return token


@dataclass(frozen=True, slots=True)
class BridgedPicking:
    """From a draft model of another vocabulary, within the tokens that both know."""

    sampling: Sampling
    width: int
    """Of the target."""
    bridge: VocabularyBridge
    shared: SharedIds = field(compare=False)
    """The bridge's, on the draft model's device."""

    @property
    def draws(self) -> bool:
        """As `Picking.draws`."""
        return not self.sampling.greedy

    def pick(self, logits: Tensor, draw: Tensor) -> Picked:
        """As `Picking.pick`."""
        return _picked(translated_scores(logits, self.shared, self.width), self.sampling, draw)

    def fed(self, token: Tensor) -> Tensor:
        """The draft model's own id."""
        return row_at(self.shared.own, token)


@dataclass(frozen=True, slots=True)
class HeadPicking:
    """From a draft head, or a target's own modules."""

    sampling: Sampling
    width: int
    """Of the target."""
    ids: Tensor = field(compare=False)
    """The target's, of the tokens that the session's head can guess."""

    @property
    def draws(self) -> bool:
        """As `Picking.draws`."""
        return not self.sampling.greedy

    def pick(self, logits: Tensor, draw: Tensor) -> Picked:
        """As `Picking.pick`."""
        found = _picked(
            logits.float(), self.sampling, draw, whole=lambda law: spread(law, self.ids, self.width)
        )
        if found.law is None:
            return found._replace(token=row_at(self.ids, found.token))
        return found

    def fed(self, token: Tensor) -> Tensor:
        """The same id."""
        return token


def _picked(
    scores: Tensor,
    sampling: Sampling,
    draw: Tensor,
    *,
    whole: Callable[[Tensor], Tensor] = lambda law: law,
) -> Picked:
    """What is taken by scores: their best place, or one drawn from the law that they stand for."""
    peak = scores.amax()
    if sampling.greedy:
        return Picked(scores.argmax(), None, peak)
    law = whole(warp(scores[None], sampling)[0])
    return Picked(pick(law, draw), law, peak)
