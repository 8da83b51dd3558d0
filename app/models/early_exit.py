"""The first layers of a target guess ahead of it: early exit, or self-speculation.

Source: LayerSkip, Elhoushi et al. 2024 (arXiv 2404.16710), section 4: the draft is the first
layers, the final norm and the output layer. Their keys and values of the text are the target's own,
so that there is no second cache, and no pass over the prompt. What they computed of the guesses is
not handed on: the target's pass over a draft goes through all layers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from app.models.block import Block
from app.models.cache import LentCache
from app.models.causal_model import CHAIN_READS, Advance, ChainModel
from app.models.language_model import LanguageModel
from app.models.machine import on_device
from app.models.picking import ChainReading, Picking, Told
from app.models.session import Reading, Session
from app.run.problems import Problem


class EarlyExit:
    """A target that answers behind its first `layers` layers; 0 takes a third of them.

    Raises Problem for more layers than can be left out of.
    """

    def __init__(self, target: LanguageModel, layers: int = 0) -> None:
        if layers >= target.layers:
            raise Problem(
                f"{layers} layers are to guess, and {target.name} has {target.layers} in all.",
                f"Choose from 1 to {target.layers - 1}, or 0 for a third of them.",
            )
        self.target = target
        self.layers = layers or max(target.layers // 3, 1)
        self.ids = torch.arange(target.width, device=target.device)
        """The target's id of each token that can be guessed: every one."""

    @property
    def name(self) -> str:
        """What it is called in figures and reports."""
        return f"the first {self.layers} of {self.target.layers} layers of {self.target.name}"

    @property
    def device(self) -> torch.device:
        """Where token ids have to lie."""
        return self.target.device

    def open_target(self, capacity: int) -> Session:
        """An empty session of the target, whose cache the first layers share."""
        return self.target.open(capacity)

    def open(self, target: Session, capacity: int) -> ExitSession:
        """A session beside one of the target, which has room for `capacity` tokens."""
        return ExitSession(self, target, capacity)


class ExitSession:
    """Reads what the target has not read yet with its first layers, behind what it has read.

    Between two passes the target's cache is as the target left it. Where the target reads in passes
    of fixed shape, whole chains of guesses are made in its own room.
    """

    def __init__(self, early_exit: EarlyExit, target: Session, capacity: int) -> None:
        self.target = target
        self._exit = early_exit
        self._capacity = capacity
        self._lent: LentCache | None = None
        self._block: Block | None = None
        self._block_fed = 0

    @property
    def byte_count(self) -> int:
        """Bytes of its own: none, as it reads and writes in the target's cache."""
        return 0

    @property
    def capacity(self) -> int:
        """Most tokens that it can hold."""
        return self._capacity

    @property
    def held(self) -> int:
        """Tokens of the text whose keys and values are there: the target's."""
        return self.target.held

    def unread(self, text: Sequence[int]) -> int:
        """How many tokens of the text the target has not read."""
        return self.target.unread(text)

    def read(
        self, text: Sequence[int], block: Block | None = None, *, rows: int, upto: int | None = None
    ) -> Reading:
        """Reads the text (its first `upto` tokens) and the block behind it, and returns the logits
        of the last `rows` tokens fed. The last token of the text is fed in any case.
        """
        if self._lent is None or block is None or block is not self._block:
            start = len(text) - self.target.to_feed(text)
            self._lent = self.target.lend(self._exit.layers)
            self._block, self._block_fed = block, 0
            fresh = on_device(text[start:upto], torch.long, self._exit.device)
        else:
            fresh = on_device([], torch.long, self._exit.device)
        if block is not None:
            fresh = torch.cat([fresh, block.tensor(self._block_fed).to(fresh.device)])
            self._block_fed = len(block)
        return Reading(self._feed(self._lent, fresh, rows))

    def chain(
        self, text: Sequence[int], count: int, *, how: Picking, told: Told
    ) -> ChainReading | None:
        """Guesses so many tokens behind the text in one go, as `ChainSession` has it."""
        model = self.target.model
        if not isinstance(model, ChainModel) or len(text) + count - 1 > self._capacity:
            return None
        unread = self.target.to_feed(text)
        lent = self.target.lend(self._exit.layers)
        if unread > CHAIN_READS or not model.holds_chain(lent, len(text), count, how):
            return None
        fresh = on_device(text[-unread:], torch.long, self._exit.device)
        found = model.chain(fresh, lent, count, how=how, told=told)
        block = Block(device=self._exit.device)
        block.extend(found.fed)
        self._lent, self._block, self._block_fed = lent, block, count - 1
        return ChainReading(block, found)

    def prepare_chain(
        self, counts: Sequence[int], how: Picking, *, behind: int, advance: Advance
    ) -> None:
        """Prepares chains of these lengths, as `ChainSession` has it."""
        model = self.target.model
        if isinstance(model, ChainModel):
            lent = self.target.lend(self._exit.layers)
            model.prepare_chain(lent, counts, how, behind=behind, advance=advance)

    def _feed(self, lent: LentCache, ids: Tensor, rows: int) -> Tensor:
        if lent.length + len(ids) > self._capacity:
            raise Problem(
                f"The text has outgrown its session of {self._capacity} tokens.",
                "Raise the context length, or ask for fewer new tokens.",
            )
        with lent.at_work():
            return self._exit.target.forward(ids, lent, rows)
