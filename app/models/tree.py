"""Guesses that branch: which guess each one stands behind, and so which rows it may see.

Source: SpecInfer, Miao et al. 2023 (arXiv 2305.09781), section 4.2, tree attention: all branches
are read in one pass, each row seeing the text and the guesses that it stands behind, at the
position that it would have if they were the text.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from app.models.machine import moved


class Tree:
    """The form of a tree of guesses: parents come before their children."""

    def __init__(self, parents: Tensor, levels: int) -> None:
        """`parents` [n] are places among the guesses, -1 for those right behind the text; none lies
        deeper than `levels`.
        """
        self.parents = parents
        self.levels = levels

    @cached_property
    def lineage(self) -> Tensor:
        """Whether guess i stands behind guess j or is it: [n, n]."""
        count = len(self.parents)
        above = torch.cat([self.parents, self.parents.new_full((1,), -1)])
        above = torch.where(above < 0, count, above)
        place = torch.arange(count, device=above.device)
        seen = torch.zeros((count, count + 1), dtype=torch.bool, device=above.device)
        for _ in range(self.levels):
            seen.scatter_(1, place[:, None], True)
            place = above[place]
        return seen[:, :count]

    @cached_property
    def before(self) -> Tensor:
        """Whether guess j comes before guess i among the children of the same parent: [n, n]."""
        same = self.parents[:, None] == self.parents[None]
        return same.tril(-1)

    @cached_property
    def depths(self) -> Tensor:
        """How many guesses lie between the text and each guess, itself counted: [n], from 1."""
        return self.lineage.sum(dim=-1)

    def places(self, start: int, end: int) -> Tensor:
        """The positions of rows start..end of a sequence whose last n rows are this tree: [rows].

        The rows before them count up from 0.
        """
        text = end - len(self.parents)
        rows = torch.arange(end, device=self.parents.device)
        rows[text:] = text - 1 + self.depths
        return rows[start:]

    def to(self, device: torch.device) -> Tree:
        """The same form on another device."""
        return Tree(moved(self.parents, device), self.levels)


def path_through(ids: list[int], parents: list[int], text: list[int]) -> list[int]:
    """The places of the guesses that a text walks through, from the first of its ids on."""
    path: list[int] = []
    at = -1
    for token in text:
        behind = (place for place, above in enumerate(parents) if above == at)
        found = next((place for place in behind if ids[place] == token), None)
        if found is None:
            break
        path.append(at := found)
    return path
