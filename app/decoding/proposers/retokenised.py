"""A draft model of any vocabulary writes freely; the target's tokenizer makes guesses of its text.

Source: string-level exact match, Timor et al. 2025 (arXiv 2502.05202), algorithm 2. The guesses are
certain, whatever the draft drew: what the target makes of them is its own affair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from app.decoding.contracts import Asking, Chained, Draft
from app.decoding.proposers.one_by_one import OneByOne
from app.models.block import Block
from app.models.retold import Retold
from app.models.vocabulary_bridge import VocabularyBridge


class Retokenised:
    """As many tokens as the limit are written, and at most as many guessed."""

    def __init__(
        self,
        writer: Callable[[int], OneByOne],
        *,
        bridge: VocabularyBridge,
        retold: Retold,
        device: torch.device,
        prompt_length: int,
    ) -> None:
        """`writer` makes what writes in the draft's own vocabulary, given the length of the prompt
        in that; `prompt_length` is that in the target's, and `device` the target's. `retold` may
        have followed the prompt.
        """
        self._make = writer
        self._chains = writer(0).chains
        self._writer: OneByOne | None = None
        self._bridge = bridge
        self._device = device
        self._prompt_length = prompt_length
        self._retold = retold

    @property
    def chains(self) -> Chained | None:
        """What the draft is asked for, in its own ids."""
        return self._chains

    def propose(self, text: Sequence[int], *, limit: int, round_: int) -> Asking:
        """The tokens of what the draft writes behind the text, at most `limit` of them.

        The draft's tokens come to the host for it: one wait a round.
        """
        if self._writer is None:
            prompt = self._retold.follow(text[: self._prompt_length])
            self._writer = self._make(len(prompt))
        known = self._retold.follow(text)
        if not known:
            return Draft(Block(), stop="the draft model cannot write the end of the text")
        written = yield from self._writer.propose(known, limit=limit, round_=round_)
        guesses = self._bridge.retokenised(text, written.block.ids)[: max(limit, 0)]
        stop = written.stop
        if len(written) and not guesses:
            stop = "the target's tokenizer does not cut the text where the draft goes on"
        block = Block(guesses, device=self._device)
        return Draft(block, None, "slem", stop, peaks=written.peaks, room=written.room)
