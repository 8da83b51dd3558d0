"""How guesses are taken from logits without the host, for passes that follow each other by
themselves: the contract between what chooses and what computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from torch import Tensor

if TYPE_CHECKING:
    import torch

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


class Told(NamedTuple):
    """What guesses depend on beside logits, as it is before the first of a draft is made."""

    draws: Sequence[float] = ()
    """One for each guess of a chain, in (0, 1); none where nothing is drawn."""
    used: Tensor | None = None
    """Which of the target's tokens the text has seen, and which were written in it: [2, width], on
    the device. None where no guess depends on that, or none has been.
    """


class Picking(Protocol):
    """Takes guesses, and asks the host for nothing. Two that are equal take the same guesses of the
    same logits, draws and used tokens: what was recorded with one serves the other.
    """

    @property
    def draws(self) -> bool:
        """Whether guesses depend on draws."""
        ...

    def none_used(self, device: torch.device) -> Tensor | None:
        """Room for `Told.used`, where no token is used yet; None if no guess depends on it."""
        ...

    def pick(self, logits: Tensor, draw: Tensor, used: Tensor | None) -> Picked:
        """The guess of a row [width of what guesses], at a uniform draw [] if it draws; where it
        depends on the tokens `used` before, it is marked as one of them.
        """
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
        self, text: Sequence[int], count: int, *, how: Picking, told: Told
    ) -> ChainReading | None:
        """So many guesses behind the text, each fed before the next is made; None where they have
        to be asked for one by one.
        """
        ...

    def prepare_chain(
        self, counts: Sequence[int], how: Picking, *, behind: int, advance: Advance
    ) -> None:
        """Does now what chains of these lengths would else have to do without, behind at least so
        many tokens. Raises what `advance` does.
        """
        ...
