"""Drafts of a model or a head: a guess a pass, each fed before the next is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from app.decoding.contracts import Asking, Draft, Read, Role, Unread
from app.models.session import MAX_CHUNK, Block, Reading


@dataclass(frozen=True, slots=True)
class Guess:
    """One guess, on the device."""

    token: Tensor
    """Its id in the target: []."""
    law: Tensor | None
    """[width], the law it was drawn from in the target's ids; None for the likeliest token."""
    finite: Tensor
    """Whether the numbers behind it could be used: a bool []."""


class OneByOne(ABC):
    """Drafts with the session of one role; what it guesses stays on the device."""

    role: Role
    source: str

    def __init__(self, device: torch.device, end_ids: Collection[int]) -> None:
        self._device = device
        self._end_ids = frozenset(end_ids)
        self._prompt_read = False

    @abstractmethod
    def limit(self, text: Sequence[int], limit: int) -> tuple[int, str]:
        """How many tokens may be guessed behind this text, and why it is fewer than `limit`."""

    @abstractmethod
    def guess(
        self, logits: Tensor, text: Sequence[int], block: Block, *, round_: int, slot: int
    ) -> Guess:
        """The guess behind the text and the block, from the last row of logits."""

    def readable(self, text: Sequence[int]) -> Sequence[int]:
        """The text as the session can read it."""
        return text

    def propose(self, text: Sequence[int], *, limit: int, round_: int) -> Asking:
        """Makes at most `limit` guesses, one pass each."""
        limit, stop = self.limit(text, limit)
        if limit <= 0:
            return Draft(Block(), stop=stop)
        known = self.readable(text)
        block = Block(device=self._device)
        made: list[Guess] = []
        yield from self._catch_up(known)
        for slot in range(limit):
            reading = yield Read(self.role, known, len(known), block, prompt=not self._prompt_read)
            assert isinstance(reading, Reading)
            self._prompt_read = True
            made.append(self.guess(reading.logits[-1], text, block, round_=round_, slot=slot))
            block.append(made[-1].token)
            if self._ended(block):
                stop = "end of text"
                break
        laws = [one.law for one in made if one.law is not None]
        finite = torch.stack([one.finite for one in made]).all()
        law = torch.stack(laws) if laws else None
        return Draft(block, law, self.source, stop, finite=finite)

    def _catch_up(self, text: Sequence[int]) -> Asking:
        """Reads what is longer than one chunk, so that a stop takes effect within one pass."""
        unread = yield Unread(self.role, text)
        assert isinstance(unread, int)
        start = len(text) - unread
        for upto in range(start + MAX_CHUNK, len(text), MAX_CHUNK):
            yield Read(self.role, text, upto, prompt=not self._prompt_read)
        return Draft(Block())

    def _ended(self, block: Block) -> bool:
        """Whether the last guess ends the text; asked only where the answer costs no waiting."""
        return self._device.type == "cpu" and int(block.tensor(len(block) - 1)) in self._end_ids
