"""What guesses beside a target, and how it reads a text beside a session of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from app.models.block import Block
from app.models.session import Reading, Session

if TYPE_CHECKING:
    from app.models.language_model import LanguageModel


class Beside(Protocol):
    """What guesses beside a target, from what that has computed: a head, modules, first layers."""

    target: LanguageModel

    @property
    def name(self) -> str:
        """What it is called in figures and reports."""
        ...

    @property
    def device(self) -> torch.device:
        """Where token ids have to lie."""
        ...

    @property
    def ids(self) -> Tensor:
        """The target's id of each token that can be guessed."""
        ...

    def open_target(self, capacity: int) -> Session:
        """An empty session of the target that keeps what is read of it."""
        ...

    def open(self, target: Session, capacity: int) -> PairedSession:
        """An empty session beside such a session of the target."""
        ...


class PairedSession(Protocol):
    """Whatever guesses from what its target's session keeps."""

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
