"""What a session needs of a language model and of its cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from app.models.picking import ChainGuesses, Picking, Told
from app.models.tree import Tree

if TYPE_CHECKING:
    from app.models.cache import LentCache


class Cache(Protocol):
    """The keys and values of one sequence, as long as what was fed and not cropped."""

    @property
    def length(self) -> int:
        """Tokens held."""
        ...

    @property
    def byte_count(self) -> int:
        """Bytes of memory taken."""
        ...

    def crop(self, length: int) -> None:
        """Forgets every token behind the first `length`."""
        ...

    def keep(self, start: int, places: Tensor) -> None:
        """Of what lies behind the first `start` tokens keeps these places [kept] only, in order."""
        ...

    def lend(self, depth: int) -> LentCache:
        """A cache of the first `depth` layers, which holds what this one holds now."""
        ...


CacheKind = TypeVar("CacheKind", bound=Cache)


class CausalModel(Protocol[CacheKind]):
    """What a session needs of a language model."""

    @property
    def device(self) -> torch.device:
        """Where token ids have to lie."""
        ...

    def new_cache(self, capacity: int) -> CacheKind:
        """An empty cache with room for `capacity` tokens."""
        ...

    def forward(self, ids: Tensor, cache: CacheKind, rows: int, tree: Tree | None = None) -> Tensor:
        """Feeds ids [n] behind the cache; logits of the last `rows` of them, [rows, width].

        The last ids may be a tree of guesses.
        """
        ...

    def forward_with_features(
        self,
        ids: Tensor,
        cache: CacheKind,
        rows: int,
        *,
        layers: tuple[int, ...] = (),
        tree: Tree | None = None,
    ) -> tuple[Tensor, Tensor]:
        """As `forward`, and the features of every token fed, [n, width].

        They are the inputs of these decoder layers (counted from 0), side by side; without any,
        the state behind the final norm.
        """
        ...


Advance = Callable[[int, int], None]
"""Told how many steps of how many are done; it may raise."""


@runtime_checkable
class Prepares(Protocol):
    """A model that can do some of the work of passes before the first of them."""

    def prepare(
        self,
        cache: Any,
        rows: int,
        *,
        behind: int,
        layers: tuple[int, ...] | None,
        advance: Advance,
    ) -> None:
        """Prepares passes of up to so many rows behind what the cache holds and will hold, at least
        `behind` tokens, with the features of these layers, as `forward_with_features` has them;
        with None for `forward`.
        """
        ...


@runtime_checkable
class ReadsOneWay(Protocol):
    """A model whose passes may be computed in another way later."""

    def is_current(self, cache: Any) -> bool:
        """Whether a session opened now would read in the same way as one with this cache."""
        ...


CHAIN_READS = 2
"""Most tokens of a text that a chain of guesses reads itself; those before them are read first."""


@runtime_checkable
class ChainModel(Protocol):
    """A model that can make whole chains of guesses, by as many layers as a cache has."""

    def holds_chain(self, cache: Any, length: int, count: int, how: Picking) -> bool:
        """Whether it can make so many guesses now behind so many tokens of a text."""
        ...

    def chain(
        self, ids: Tensor, cache: Any, count: int, *, how: Picking, told: Told
    ) -> ChainGuesses:
        """Feeds ids [1 or 2] behind the cache and makes guesses, each fed before the next is made.
        There has to be such a chain.
        """
        ...

    def prepare_chain(
        self, cache: Any, counts: Sequence[int], how: Picking, *, behind: int, advance: Advance
    ) -> None:
        """Prepares chains of these lengths behind at least so many tokens."""
        ...
