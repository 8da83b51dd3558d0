"""A tree of guesses that grows level by level where a model is surest, and is then thinned out.

Source: EAGLE-2, Li et al. 2024 (arXiv 2406.16858), section 4: expansion and reranking. A guess
scores the sum of the log-probabilities on its way from the text. The best of each level are given
children; of all guesses the best are kept, which hang together, as no child scores above its
parent. All of it depends on the draft alone, so that every guess is certain.
"""

from __future__ import annotations

import torch
from torch import Tensor

from app.models.block import Block


class GrownTree:
    """A tree at work, all of it on one device."""

    def __init__(self, device: torch.device, *, breadth: int, end_ids: Tensor) -> None:
        """`breadth` of each level grow on, and so many children each is given; nothing is worth a
        guess behind one of `end_ids` [ends].
        """
        self.beam = Block(device=device)
        """The guesses that have grown on, or are about to: what a model has to read."""
        self._breadth = breadth
        self._end_ids = end_ids
        self._tokens: list[Tensor] = []
        self._scores: list[Tensor] = []
        self._parents: list[Tensor] = []
        self._count = 0
        self._growing = torch.full((1,), -1, device=device)
        """The last level of the beam, by places among all guesses, and in the beam; its scores."""
        self._in_beam = self._growing
        self._reached = torch.zeros(1, device=device)

    @property
    def width(self) -> int:
        """How many guesses of the beam are to be given children: all that it grew by last."""
        return len(self._in_beam)

    def grow(self, confidence: Tensor, ids: Tensor) -> None:
        """Gives children to the last level of the beam, or to the text: by log-probabilities
        [guesses, vocabulary] of these `ids` [vocabulary]. The best of them are the next level.
        """
        best = torch.topk(confidence.clamp(max=0.0), min(self._breadth, len(ids)), dim=-1)
        children = best.values.shape[1]
        tokens, scores = ids[best.indices].flatten(), best.values + self._reached[:, None]
        self._tokens.append(tokens)
        self._scores.append(scores.flatten())
        self._parents.append(self._growing.repeat_interleave(children))
        self._choose(tokens, scores.flatten(), self._in_beam.repeat_interleave(children))

    def extend_beam(self) -> None:
        """Puts the next level on the beam, to be read."""
        start = len(self.beam)
        levels = 1 + (self.beam.tree.levels if self.beam.tree else 0)
        self.beam.branch(self._chosen, self._in_beam, levels=levels)
        self._in_beam = torch.arange(start, len(self.beam), device=self.beam.device)

    def best(self, nodes: int) -> Block:
        """The best guesses of all levels, at most so many, parents first."""
        tokens, scores = torch.cat(self._tokens), torch.cat(self._scores)
        parents = torch.cat(self._parents)
        # Of equals the first comes first, so that no parent is left out for its child.
        order = torch.sort(scores, descending=True, stable=True).indices
        kept = order[:nodes].sort().values
        place = torch.full((len(scores) + 1,), -1, device=kept.device)
        place[kept] = torch.arange(len(kept), device=kept.device)
        block = Block(device=kept.device)
        block.branch(tokens[kept], place[parents[kept]], levels=len(self._tokens))
        return block

    def _choose(self, tokens: Tensor, scores: Tensor, above: Tensor) -> None:
        """The best of a new level, whose parents lie at places of the beam."""
        best = torch.topk(scores, min(self._breadth, len(scores)))
        self._chosen, self._in_beam = tokens[best.indices], above[best.indices]
        self._growing = self._count + best.indices
        # Not isin, which asks a card for the distinct ones of a longer list.
        ended = (self._chosen[:, None] == self._end_ids).any(dim=-1)
        self._reached = best.values.masked_fill(ended, -torch.inf)
        self._count += len(scores)
