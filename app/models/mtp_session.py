"""Modules for multi-token prediction at work beside one session of their target.

The first module reads pairs: the target's feature of token t, and token t + 1. The next one reads
what the first made of that, and token t + 2; and so on (DeepSeek-V3, arXiv 2412.19437, section
2.2). Behind the last module that one goes on with its own answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from app.models.block import Block
from app.models.cache import FixedLayer
from app.models.machine import on_device
from app.models.pairs_session import PairsSession
from app.models.session import Reading, Session

if TYPE_CHECKING:
    from app.models.loaded_mtp import LoadedMtp


class MtpSession(PairsSession):
    """Keeps what came from the text; what it made of its own guesses is forgotten each round.

    Place t of module k (from 0) belongs to the pair of the target's feature of token t with the
    token t + k + 1: with n tokens read, it holds n - k - 1 places that came from the text.
    """

    def __init__(self, mtp: LoadedMtp, target: Session, capacity: int) -> None:
        super().__init__(target, capacity)
        self._mtp = mtp
        self._layers = [FixedLayer(capacity) for _ in mtp.modules]
        self._cache = Cache(layers=self._layers)
        self._answers: list[Tensor] = []
        """Of every module but the last, behind its norm, by place: [capacity, hidden]."""
        self._answer = torch.empty(0)
        """Of the last place of the module that was asked last, behind its norm: [1, hidden]."""
        self._again = torch.empty(0)
        """The same as the last module takes it, if it is to go on with it: [1, hidden]."""

    @property
    def byte_count(self) -> int:
        """Bytes that the caches take, and the answers that are kept."""
        held = [layer for layer in self._layers if layer.is_initialized]
        tensors = [tensor for layer in held for tensor in (layer.keys, layer.values)]
        return sum(one.numel() * one.element_size() for one in [*tensors, *self._answers])

    @torch.inference_mode()
    def read(
        self, text: Sequence[int], block: Block | None = None, *, rows: int, upto: int | None = None
    ) -> Reading:
        """Reads the text (its first `upto` tokens) and the block behind it.

        Returns the logits [1, width] of what follows the last token; `rows` is not asked for. The
        target's session must have read all of the text but its last token. A text of one token has
        no pair, and may not be read.
        """
        self._begin(text, block, upto)
        if block is not None:
            while self._block_fed < len(block):
                self._block_fed += 1
                self._feed_guess(block)
        return Reading(self._mtp.logits(self._answer))

    def _feed_text(self, text: Sequence[int], upto: int) -> None:
        """Feeds each module the places that it does not hold; the first its last one again if all
        are held.
        """
        self._forget(min(self._settled, upto - 2))
        for depth, layer in enumerate(self._layers):
            start, end = layer.length, max(upto - 1 - depth, 0)
            if start == end:
                continue
            ids = on_device(text[start + depth + 1 : upto], torch.long, self._mtp.device)
            found = self._feed(depth, ids, self._features(depth, start, end))
            if depth == 0:
                self._answer = found
        self._settled = upto - 1

    def _feed_guess(self, block: Block) -> None:
        """Feeds the guess that is to be fed next, and what waited for it, to the module whose turn
        it is.
        """
        guesses = self._block_fed
        last = len(self._layers) - 1
        if guesses > last:
            token = block.tensor(guesses - 1)[:1].to(self._mtp.device)
            self._answer = self._feed(last, token, self._again)
            return
        start, end = self._layers[guesses].length, self._settled
        made = block.tensor()[:guesses].to(self._mtp.device)
        ids = made[guesses - (end - start) :]
        self._answer = self._feed(guesses, ids, self._features(guesses, start, end))

    def _features(self, depth: int, start: int, end: int) -> Tensor:
        """What a module takes at places start..end: the target's features, or answers."""
        before = self._answers[depth - 1] if depth else self.target.features
        return before[start:end]

    def _feed(self, depth: int, ids: Tensor, features: Tensor) -> Tensor:
        """Feeds a module places behind its cache, ids [n] and features [n, hidden]; the answer of
        the last of them behind its norm, [1, hidden].
        """
        start = self._layers[depth].length
        raw = self._mtp.answers(depth, ids, features, start=start, cache=self._cache)
        normed = self._mtp.normed(depth, raw)
        if depth < len(self._layers) - 1:
            self._keep(depth, start, normed)
        else:
            self._again = (normed if self._mtp.layout.feeds_normed else raw)[-1:]
        return normed[-1:]

    def _keep(self, depth: int, start: int, answers: Tensor) -> None:
        """Keeps a module's answers from place `start` on for the module after it."""
        if depth == len(self._answers):
            self._answers.append(answers.new_empty((self._capacity, answers.shape[-1])))
        self._answers[depth][start : start + len(answers)] = answers

    def _crop(self, settled: int) -> None:
        """Leaves so many places of the first module, and as many tokens' of the others."""
        for depth, layer in enumerate(self._layers):
            surplus = layer.length - max(settled - depth, 0)
            if surplus > 0:
                layer.crop(-surplus)
