"""Ids under test: what a draft guesses, and a session reads behind its text."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from app.models.machine import moved, on_device
from app.models.tree import Tree


class Block:
    """Ids under test behind the text. They may live on the device until a round's one copy home.

    A block only grows. A session knows it again by identity, so it is never fed twice. Its guesses
    follow each other, or they are a `tree`.
    """

    def __init__(self, ids: Sequence[int] = (), *, device: torch.device | None = None) -> None:
        self.device = device or torch.device("cpu")
        self._parts: list[Tensor] = []
        self.tree: Tree | None = None
        """The form of guesses that branch; None where each follows the one before it."""
        self._host: list[int] | None = []
        self._parents: list[int] | None = None
        self._length = 0
        if ids:
            self._parts.append(on_device(ids, torch.long, self.device))
            self._host, self._length = list(ids), len(ids)

    def __len__(self) -> int:
        return self._length

    def append(self, token: Tensor) -> None:
        """Adds one id, a tensor [] on the device."""
        self.extend(token.reshape(1))

    def extend(self, tokens: Tensor) -> None:
        """Adds ids [n] on the device, one behind the other."""
        self._parts.append(tokens)
        self._length += len(tokens)
        self._host = None

    def branch(self, tokens: Tensor, parents: Tensor, *, levels: int) -> None:
        """Adds guesses, ids [n], each behind the guess at its place of `parents` [n], or behind the
        text at -1; the tree is then at most so many `levels` deep.
        """
        before = [self.tree.parents] if self.tree else []
        self.tree = Tree(torch.cat([*before, parents]), levels)
        self._parts.append(tokens)
        self._length += len(tokens)
        self._host = self._parents = None

    @property
    def lineage(self) -> Tensor:
        """Whether guess i stands behind guess j or is it: [n, n]."""
        if self.tree is not None:
            return self.tree.lineage
        whole = torch.ones((self._length, self._length), dtype=torch.bool, device=self.device)
        return whole.tril()

    def tensor(self, start: int = 0) -> Tensor:
        """The ids from place `start` on, [n - start]."""
        if len(self._parts) > 1:
            self._parts = [torch.cat(self._parts)]
        whole = self._parts[0] if self._parts else torch.empty(0, dtype=torch.long)
        return whole.to(self.device)[start:]

    def move(self, device: torch.device) -> None:
        """Takes the ids to another device, where all that is read from now on is read."""
        if device == self.device:
            return
        self._parts = [moved(self.tensor(), device)]
        self.tree = self.tree.to(device) if self.tree else None
        self.device = device
        if device.type == "cpu":
            self._host = self._parts[0].tolist()

    def settle(self, ids: Sequence[int], parents: Sequence[int] | None = None) -> None:
        """Tells what the ids are, and the parents of a tree, once they are on the host."""
        self._host = list(ids)
        self._parents = None if parents is None else list(parents)

    @property
    def ids(self) -> list[int]:
        """The ids on the host; copies them if no one has yet."""
        if self._host is None:
            self._host = self.tensor().tolist()
        return self._host

    @property
    def parents(self) -> list[int]:
        """The place that each guess stands behind, -1 for the text; on the host, as `ids`."""
        if self.tree is None:
            return list(range(-1, self._length - 1))
        if self._parents is None:
            self._parents = self.tree.parents.tolist()
        return self._parents
