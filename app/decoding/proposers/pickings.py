"""How guesses are taken where a session makes a whole chain of them: each as one by one.

What follows from the run's seed or its text is no part of it, and is told before each chain: two
lanes that take guesses alike have equal ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import torch
from torch import Tensor

from app.decoding.contracts import row_at
from app.decoding.sampling import penalised, pick, warp
from app.models.picking import Picked
from app.models.vocabulary_bridge import SharedIds, VocabularyBridge
from app.run.settings import Sampling


def law_of(sampling: Sampling) -> Sampling:
    """These settings as far as the law depends on them that a row of logits stands for, behind the
    tokens that were used before.
    """
    return msgspec.structs.replace(sampling, seed=0)


def shared_scores(logits: Tensor, shared: int, width: int) -> Tensor:
    """A draft model's logits [rows, its width] as scores in the target's ids [rows, width], in
    fp32; ids that are not shared, from `shared` on, have none.
    """
    known = logits[:, :shared].float()
    whole = logits.new_full((len(logits), width), -torch.inf, dtype=torch.float32)
    whole[:, : known.shape[-1]] = known
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
class _ByScores:
    """The likeliest token is taken, or one is drawn from the law that scores stand for."""

    sampling: Sampling
    width: int
    """Of the target."""

    @property
    def draws(self) -> bool:
        """As `Picking.draws`."""
        return not self.sampling.greedy

    def none_used(self, device: torch.device) -> Tensor | None:
        """As `Picking.none_used`."""
        if not self.sampling.penalised:
            return None
        return torch.zeros((2, self.width), dtype=torch.bool, device=device)

    def fed(self, token: Tensor) -> Tensor:
        """The same id."""
        return token

    def _picked(
        self, scores: Tensor, draw: Tensor, used: Tensor | None, ids: Tensor | None = None
    ) -> Picked:
        """What is taken by scores, which are those of the target's `ids` only, if these are given;
        it is marked as used.
        """
        if used is not None:
            before = used if ids is None else used.index_select(1, ids)
            scores = penalised(scores, before, self.sampling)
        law = None
        if self.sampling.greedy:
            best = scores.argmax()
            token = best if ids is None else row_at(ids, best)
        else:
            own = warp(scores[None], self.sampling)[0]
            law = own if ids is None else spread(own, ids, self.width)
            token = pick(law, draw)
        if used is not None:
            used.index_fill_(1, token.reshape(1), True)
        return Picked(token, law, scores.amax())


@dataclass(frozen=True, slots=True)
class DraftPicking(_ByScores):
    """From a draft model of the target's vocabulary."""

    shared: int
    """Ids that both know."""

    def pick(self, logits: Tensor, draw: Tensor, used: Tensor | None) -> Picked:
        """As `Picking.pick`."""
        return self._picked(shared_scores(logits[None], self.shared, self.width)[0], draw, used)


@dataclass(frozen=True, slots=True)
class BridgedPicking(_ByScores):
    """From a draft model of another vocabulary, within the tokens that both know."""

    bridge: VocabularyBridge
    shared: SharedIds = field(compare=False)
    """The bridge's, on the draft model's device."""

    def pick(self, logits: Tensor, draw: Tensor, used: Tensor | None) -> Picked:
        """As `Picking.pick`."""
        return self._picked(translated_scores(logits, self.shared, self.width), draw, used)

    def fed(self, token: Tensor) -> Tensor:
        """The draft model's own id."""
        return row_at(self.shared.own, token)


@dataclass(frozen=True, slots=True)
class HeadPicking(_ByScores):
    """From a draft head, or a target's own modules."""

    ids: Tensor = field(compare=False)
    """The target's, of the tokens that the session's head can guess."""

    def pick(self, logits: Tensor, draw: Tensor, used: Tensor | None) -> Picked:
        """As `Picking.pick`."""
        return self._picked(logits.float(), draw, used, self.ids)
