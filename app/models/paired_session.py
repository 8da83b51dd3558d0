"""What reads a text beside a session of its target: as pairs of a feature and the token behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.models.session import Block, Reading, Session


class PairedSession(Protocol):
    """Whatever guesses from the features that its target's session keeps."""

    target: Session

    @property
    def byte_count(self) -> int:
        """Bytes that it keeps."""
        ...

    @property
    def capacity(self) -> int:
        """Most pairs that it can hold."""
        ...

    @property
    def held(self) -> int:
        """Tokens of the text that the pairs held from the target reach."""
        ...

    def unread(self, text: Sequence[int]) -> int:
        """How many tokens of the text are in no pair yet."""
        ...

    def read(
        self, text: Sequence[int], block: Block | None = None, *, rows: int, upto: int | None = None
    ) -> Reading:
        """The logits of what follows the text (its first `upto` tokens) and the block behind."""
        ...
