"""How guesses are taken from logits without the host, for passes that follow each other by
themselves: the contract between what chooses and what computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from torch import Tensor

if TYPE_CHECKING:
    from app.models.block import Block
    from app.models.causal_model import Advance


class Picked(NamedTuple):
    """One guess, on the device."""

    token: Tensor
    """Its id in the target: []."""
    law: Tensor | None
    """[width], the law it was drawn from in the target's ids; None for the likeliest token."""
    peak: Tensor
    """The highest of the scores behind it, finite if they can be used: []."""


class Picking(Protocol):
    """Takes guesses, and asks the host for nothing. Two that are equal take the same guesses of the
    same logits and draws: what was recorded with one serves the other.
    """

    @property
    def draws(self) -> bool:
        """Whether guesses depend on draws."""
        ...

    def pick(self, logits: Tensor, draw: Tensor) -> Picked:
        """The guess of a row [width of what guesses], at a uniform draw [] if it draws."""
        ...

    def fed(self, token: Tensor) -> Tensor:
        """The id [] that what guesses reads for a guess []."""
        ...

    def __hash__(self) -> int: ...


class ChainGuesses(NamedTuple):
    """Guesses that were made one behind the other, on the device."""

    ids: Tensor
    """In the target's ids: [count]."""
    fed: Tensor
    """As what guesses reads them: [count]."""
    laws: Tensor | None
    """[count, width], as `Picked.law`."""
    peaks: Tensor
    """Of each, as `Picked.peak`: [count]."""


class ChainReading(NamedTuple):
    """What a session answers that has made a whole chain of guesses."""

    block: Block
    """The guesses as the session was fed them, all but the last."""
    chain: ChainGuesses


@runtime_checkable
class ChainSession(Protocol):
    """A session that may make whole chains of guesses by itself."""

    def chain(
        self, text: Sequence[int], count: int, *, how: Picking, draws: Sequence[float]
    ) -> ChainReading | None:
        """So many guesses behind the text, each fed before the next is made; None where they have
        to be asked for one by one. `draws` are one for each guess, or none where nothing is drawn.
        """
        ...

    def prepare_chain(
        self, counts: Sequence[int], how: Picking, *, behind: int, advance: Advance
    ) -> None:
        """Does now what chains of these lengths would else have to do without, behind at least so
        many tokens. Raises what `advance` does.
        """
        ...
