"""A trained layer guesses from the target's own features, token by token (a chain).

Source: EAGLE, Li et al. 2024 (arXiv 2401.15077), section 3. The law of a guess is the head's, at
the run's sampling settings, over the tokens that it can guess; any other token has probability 0.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from app.decoding.contracts import Asking, Draft, Read, Unread, row_at
from app.decoding.randomness import draw
from app.decoding.sampling import Penalties, pick, warp
from app.models.session import MAX_CHUNK, Block, Reading
from app.run.settings import Sampling


class DraftHead:
    """Drafts with the session of the role `head`."""

    def __init__(
        self,
        *,
        sampling: Sampling,
        ids: Tensor,
        width: int,
        prompt_length: int,
        end_ids: Collection[int],
        length: int = 0,
    ) -> None:
        """`ids` [vocabulary] are the target's, of the tokens that the head can guess; a `length`
        above 0 limits every draft.
        """
        self._sampling = sampling
        self._ids = ids
        self._width = width
        self._penalties = Penalties(sampling, prompt_length)
        self._end_ids = frozenset(end_ids)
        self._length = length
        self._prompt_read = False

    def propose(self, text: Sequence[int], *, limit: int, round_: int) -> Asking:
        """Draws at most `limit` tokens, one pass each; their ids stay on the device."""
        limit = min(limit, self._length) if self._length else limit
        if limit <= 0:
            return Draft(Block())
        if len(text) < 2:
            return Draft(Block(), stop="there is no feature to guess from yet")
        block = Block(device=self._ids.device)
        laws: list[Tensor] = []
        finite: list[Tensor] = []
        stop = ""
        yield from self._catch_up(text)
        for slot in range(limit):
            reading = yield Read("head", text, len(text), block, prompt=not self._prompt_read)
            assert isinstance(reading, Reading)
            self._prompt_read = True
            logits = self._logits(reading, text, block)
            finite.append(torch.isfinite(logits.amax()))
            block.append(self._choose(logits, laws, round_, slot))
            if self._ended(block):
                stop = "end of text"
                break
        law = torch.stack(laws) if laws else None
        return Draft(block, law, "head", stop, finite=torch.stack(finite).all())

    def _catch_up(self, text: Sequence[int]) -> Asking:
        """Reads what is longer than one chunk, so that a stop takes effect within one pass."""
        unread = yield Unread("head", text)
        assert isinstance(unread, int)
        start = max(len(text) - unread, 1)
        for upto in range(start + MAX_CHUNK, len(text), MAX_CHUNK):
            yield Read("head", text, upto, prompt=not self._prompt_read)
        return Draft(Block())

    def _logits(self, reading: Reading, text: Sequence[int], block: Block) -> Tensor:
        """Penalised fp32 logits [vocabulary] over the tokens that the head can guess."""
        logits = reading.logits[-1].float()
        if not self._sampling.penalised:
            return logits
        whole = logits.new_full((1, self._width), -torch.inf)
        whole[0, self._ids] = logits
        return self._penalties.apply(whole, text, block)[0, self._ids]

    def _choose(self, logits: Tensor, laws: list[Tensor], round_: int, slot: int) -> Tensor:
        """One token's id, and the law it was drawn from in the target's ids."""
        if self._sampling.greedy:
            return row_at(self._ids, logits.argmax())
        law = warp(logits[None], self._sampling)[0]
        place = pick(law, draw(self._sampling.seed, "draft", round_, slot))
        laws.append(law.new_zeros(self._width).index_copy_(0, self._ids, law))
        return row_at(self._ids, place)

    def _ended(self, block: Block) -> bool:
        """Whether the last guess ends the text; asked only where the answer costs no waiting."""
        if self._ids.device.type != "cpu":
            return False
        return int(block.tensor(len(block) - 1)) in self._end_ids
