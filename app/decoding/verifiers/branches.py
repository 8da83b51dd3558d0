"""The walk through a tree of guesses: from the text down, at each guess its children in order.

Source: SpecInfer, Miao et al. 2023 (arXiv 2305.09781), algorithm 2, for guesses that were certain,
as EAGLE's top-k children are. All of it stays on the device: which guesses pass is known before the
walk, and the walk is what passes and lies behind nothing but what passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from app.decoding.contracts import Draft
from app.models.tree import Tree


@dataclass(frozen=True)
class Walk:
    """Where a rule's choices lead: of each guess, whether it passes if its turn comes."""

    tree: Tree
    passes: Tensor
    """[drafted]"""

    @cached_property
    def kept(self) -> Tensor:
        """The guesses that are kept: the first child that passes, of the text and of each: [n]."""
        return (self._first | ~self.tree.lineage).all(dim=-1)

    @cached_property
    def tested(self) -> Tensor:
        """The guesses whose turn came: [n]."""
        reached = torch.cat([self.kept, self.kept.new_ones(1)])[self.tree.parents]
        return reached & ~self._overtaken

    @cached_property
    def accepted(self) -> Tensor:
        """How many guesses are kept: []."""
        return self.kept.long().sum()

    @cached_property
    def row(self) -> Tensor:
        """The target's row behind the last guess that is kept: []."""
        rows = torch.arange(1, len(self.kept) + 1, device=self.kept.device)
        return torch.where(self.kept, rows, 0).amax()

    @cached_property
    def _overtaken(self) -> Tensor:
        """Whether a child before it passes: [n]."""
        return (self.tree.before & self.passes).any(dim=-1)

    @property
    def _first(self) -> Tensor:
        return self.passes & ~self._overtaken


def branch_chances(laws: Tensor, draft: Draft, tree: Tree) -> Tensor:
    """The chance [drafted] that each guess is kept once its turn has come, in fp64 where there is.

    That is its share of what the children before it have left of the target's law: each that is
    rejected has its probability taken away. `laws` [drafted + 1, width] are the target's.
    """
    exact = laws.dtype if laws.device.type == "mps" else torch.float64
    guesses, rows = draft.block.tensor(), tree.parents + 1
    earlier = tree.before
    twin = (earlier & (guesses[:, None] == guesses[None])).any(dim=-1)
    p = laws[rows, guesses].to(exact).masked_fill(twin, 0.0)
    spent = torch.where(earlier, p[None], 0.0).sum(dim=-1)
    left = laws.sum(dim=-1, dtype=exact)[rows] - spent
    return torch.where(left > p, p / left, (p > 0).to(exact))


def left_over(p: Tensor, draft: Draft, tree: Tree, row: Tensor) -> Tensor:
    """The law [width] of the token behind the last kept guess, p [width] being the target's there:
    p without the children that were rejected, normalised; p itself where nothing else is left.
    """
    children = (tree.parents + 1 == row).to(p.dtype)
    tried = torch.zeros_like(p).scatter_add_(0, draft.block.tensor(), children)
    left = p.masked_fill(tried > 0, 0.0)
    total = left.sum()
    return torch.where(total > 0, left / total, p)
