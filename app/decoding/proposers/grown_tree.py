"""A tree of guesses that grows level by level where a model is surest, and is then thinned out.

Source: EAGLE-2, Li et al. 2024 (arXiv 2406.16858), section 4: expansion and reranking. A guess
scores the sum of the log-probabilities on its way from the text. The best of each level are given
children; of all guesses the best are kept, which hang together, as no child scores above its
parent. All of it depends on the draft alone, so that every guess is certain.

`TreeGrowing` is this way to grow trees, a `Growing`; `GrownTree` is one of them, a `Growth`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import torch
from torch import Tensor

from app.decoding.sampling import penalised
from app.models.block import Block
from app.models.growing import TreeGuesses
from app.run.settings import Sampling


@dataclass(frozen=True, slots=True)
class TreeGrowing:
    """How trees are grown of what a head is sure of; whether they are alike depends on the sizes,
    on what ends a text, and on penalties.
    """

    nodes: int
    """Most guesses of a tree."""
    breadth: int
    """So many of each level grow on, and so many children each is given."""
    ends: frozenset[int]
    """Nothing is worth a guess behind one of these ids."""
    ids: Tensor = field(compare=False)
    """The target's, of the tokens that the head can guess: [vocabulary]."""
    end_ids: Tensor = field(compare=False)
    """The ends, on the same device: [ends]."""
    penalties: Sampling = Sampling()
    """Settings of which there are no others."""
    width: int = 0
    """Of the target, where there are penalties."""

    @classmethod
    def of(
        cls,
        ids: Tensor,
        *,
        nodes: int,
        breadth: int,
        end_ids: Collection[int],
        sampling: Sampling = Sampling(),
        width: int = 0,
    ) -> TreeGrowing:
        """For a head that can guess these ids, [vocabulary], of a target of this width; trees grow
        where they lie, by no more of the settings than their penalties.
        """
        ends = torch.tensor(sorted(end_ids), dtype=torch.long, device=ids.device)
        penalties = Sampling(
            repetition_penalty=sampling.repetition_penalty,
            presence_penalty=sampling.presence_penalty,
        )
        return cls(nodes, breadth, frozenset(end_ids), ids, ends, penalties, width)

    def none_used(self, device: torch.device) -> Tensor | None:
        """As `Growing.none_used`."""
        if not self.penalties.penalised:
            return None
        return torch.zeros((2, self.width), dtype=torch.bool, device=device)

    def begin(self, used: Tensor | None = None) -> GrownTree:
        """As `Growing.begin`."""
        return GrownTree(self, self.none_used(self.ids.device) if used is None else used)

    def read(self, levels: int) -> int:
        """As `Growing.read`."""
        return self.breadth * max(levels - 1, 0)


class GrownTree:
    """A tree at work, all of it on one device."""

    def __init__(self, how: TreeGrowing, used: Tensor | None) -> None:
        """`used` are the tokens that the text has seen, and written, [2, width of the target]; None
        without penalties.
        """
        device = how.ids.device
        self.beam = Block(device=device)
        """As `Growth.beam`."""
        self._how = how
        self._peaks: list[Tensor] = []
        self._tokens: list[Tensor] = []
        self._scores: list[Tensor] = []
        self._parents: list[Tensor] = []
        self._count = 0
        self._growing = torch.full((1,), -1, device=device)
        """The last level of the beam, by places among all guesses, and in the beam; its scores."""
        self._in_beam = self._growing
        self._reached = torch.zeros(1, device=device)
        self._used = None if used is None else used.index_select(1, how.ids)[:, None]
        """What was used before each of them, and what it is itself: [2, guesses, vocabulary]."""

    @property
    def width(self) -> int:
        """How many guesses of the beam are to be given children: all that it grew by last."""
        return len(self._in_beam)

    def grow(self, logits: Tensor) -> None:
        """As `Growth.grow`; the best of the children are the next level."""
        ids, scores = self._how.ids, logits.float()
        if self._used is not None:
            scores = penalised(scores, self._used, self._how.penalties)
        self._peaks.append(scores.amax(dim=-1))
        confidence = torch.log_softmax(scores, dim=-1).clamp(max=0.0)
        best = torch.topk(confidence, min(self._how.breadth, len(ids)), dim=-1)
        children = best.values.shape[1]
        tokens = ids[best.indices].flatten()
        reached = (best.values + self._reached[:, None]).flatten()
        self._tokens.append(tokens)
        self._scores.append(reached)
        self._parents.append(self._growing.repeat_interleave(children))
        chosen = self._choose(tokens, reached, self._in_beam.repeat_interleave(children))
        if self._used is not None:
            own = best.indices.flatten()[chosen][:, None].expand(2, -1, 1)
            self._used = self._used.index_select(1, chosen // children).scatter(2, own, True)

    def extend_beam(self) -> None:
        """As `Growth.extend_beam`."""
        start = len(self.beam)
        levels = 1 + (self.beam.tree.levels if self.beam.tree else 0)
        self.beam.branch(self._chosen, self._in_beam, levels=levels)
        self._in_beam = torch.arange(start, len(self.beam), device=self.beam.device)

    def best(self) -> TreeGuesses:
        """The best guesses of all levels, parents first."""
        tokens, scores = torch.cat(self._tokens), torch.cat(self._scores)
        parents = torch.cat(self._parents)
        # Of equals the first comes first, so that no parent is left out for its child.
        order = torch.sort(scores, descending=True, stable=True).indices
        kept = order[: self._how.nodes].sort().values
        place = torch.full((len(scores) + 1,), -1, device=kept.device)
        place[kept] = torch.arange(len(kept), device=kept.device)
        return TreeGuesses(tokens[kept], place[parents[kept]], torch.cat(self._peaks))

    def _choose(self, tokens: Tensor, scores: Tensor, above: Tensor) -> Tensor:
        """Takes the best of a level whose parents lie at places of the beam; which they are."""
        best = torch.topk(scores, min(self._how.breadth, len(scores)))
        self._chosen, self._in_beam = tokens[best.indices], above[best.indices]
        self._growing = self._count + best.indices
        # Not isin, which asks a card for the distinct ones of a longer list.
        ended = (self._chosen[:, None] == self._how.end_ids).any(dim=-1)
        self._reached = best.values.masked_fill(ended, -torch.inf)
        self._count += len(scores)
        return best.indices
