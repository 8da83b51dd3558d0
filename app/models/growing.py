"""How trees of guesses are grown from logits without the host, for passes that follow each other by
themselves: the contract between what chooses and what computes.

`Growing` is a way to grow trees, `Growth` one tree while it grows, `TreeGuesses` what it came to;
they are to a tree what `Picking` and `ChainGuesses` are to a chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from app.models.picking import Told

if TYPE_CHECKING:
    import torch

    from app.models.block import Block
    from app.models.causal_model import Advance


class TreeGuesses(NamedTuple):
    """A tree of guesses, parents before their children, on the device."""

    ids: Tensor
    """In the target's ids: [guesses]."""
    parents: Tensor
    """The place of the guess that each stands behind, -1 for the text: [guesses]."""
    peaks: Tensor
    """The highest of the scores behind the text and each guess that has grown on, finite if they
    can be used: [1 + grown].
    """


class Growth(Protocol):
    """A tree that grows level by level."""

    @property
    def beam(self) -> Block:
        """The guesses that have grown on, or are about to: what a model has to read."""
        ...

    def grow(self, logits: Tensor) -> None:
        """Gives children to the text, or to each guess that was put on the beam last, by the logits
        behind it: [guesses, vocabulary].
        """
        ...

    def extend_beam(self) -> None:
        """Puts those of the next level that grow on on the beam, to be read."""
        ...

    def best(self) -> TreeGuesses:
        """What the tree is once it has grown."""
        ...


class Growing(Protocol):
    """Grows trees, and asks the host for nothing: no number but the levels decides what a tensor
    looks like. Two that are equal grow the same trees of the same logits: what was recorded with
    one serves the other.
    """

    def none_used(self, device: torch.device) -> Tensor | None:
        """As `Picking.none_used`."""
        ...

    def begin(self, used: Tensor | None = None) -> Growth:
        """A tree without guesses, behind a text that has used these tokens, as `Told.used` has
        them.
        """
        ...

    def read(self, levels: int) -> int:
        """Guesses that are read while a tree of so many levels grows, at most."""
        ...

    def __hash__(self) -> int: ...


@runtime_checkable
class TreeSession(Protocol):
    """A session that may make whole trees of guesses by itself."""

    def tree(
        self, text: Sequence[int], levels: int, *, how: Growing, told: Told
    ) -> TreeGuesses | None:
        """A tree of so many levels behind the text, each read before the next is made; None where
        they have to be asked for level by level.
        """
        ...

    def prepare_trees(
        self, levels: Sequence[int], how: Growing, *, behind: int, advance: Advance
    ) -> None:
        """Does now what trees of so many levels would else have to do without, behind at least so
        many tokens. Raises what `advance` does.
        """
        ...
