"""What sessions have in common that read a text as pairs, beside one session of their target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from app.models.block import Block
from app.models.session import Session, shared_start


class PairsSession(ABC):
    """A pair is the target's feature of a token, and the token behind it.

    What came from the text is kept; what was fed of a block's guesses is forgotten before the next
    round.
    """

    def __init__(self, target: Session, capacity: int) -> None:
        self.target = target
        self._capacity = capacity
        self._text: Sequence[int] = ()
        self._settled = 0
        """Pairs held that came from the target's features."""
        self._block: Block | None = None
        self._block_fed = 0

    @property
    def capacity(self) -> int:
        """Most pairs that it can hold."""
        return self._capacity

    @property
    def held(self) -> int:
        """Tokens of the text that the pairs held from the target reach: each has two."""
        return self._settled + 1 if self._settled else 0

    def unread(self, text: Sequence[int]) -> int:
        """How many tokens of the text are in no pair yet."""
        self._reconcile(text)
        return len(text) - self.held

    def _begin(self, text: Sequence[int], block: Block | None, upto: int | None) -> None:
        """Feeds what the text (its first `upto` tokens) says anew, unless the block is the one that
        is being fed. The target's features are put in order first: those of a branch that was kept
        lie apart until then.
        """
        if block is not None and block is self._block:
            return
        self.target.unread(text)
        self._reconcile(text)
        self._feed_text(text, len(text) if upto is None else upto)
        self._block, self._block_fed = block, 0

    def _reconcile(self, text: Sequence[int]) -> None:
        """Forgets what it fed itself, and pairs that are not of this text."""
        if text is not self._text:
            shared = shared_start(self._text[: self.held], text[: self.held])
            self._settled = min(self._settled, max(shared - 1, 0))
            self._text = text
        self._block, self._block_fed = None, 0
        self._forget(max(len(text) - 1, 0))

    def _forget(self, settled: int) -> None:
        """Leaves at most so many pairs that came from the text, and nothing behind them."""
        self._settled = min(self._settled, settled)
        self._crop(self._settled)

    @abstractmethod
    def _crop(self, settled: int) -> None:
        """Forgets what is held behind so many pairs."""

    @abstractmethod
    def _feed_text(self, text: Sequence[int], upto: int) -> None:
        """Feeds the pairs that are not held yet; the last one again if all are."""
