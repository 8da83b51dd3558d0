"""A small model guesses, token by token, what the target would write.

Source: Leviathan et al. 2023 (arXiv 2211.17192), section 2.3. The draft draws at the run's own
sampling settings, and its law is handed on exactly as it was drawn from.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from app.decoding.contracts import Asking, Draft, Read, Unread
from app.decoding.randomness import draw
from app.decoding.sampling import Penalties, pick, warp
from app.models.pair import DraftWidths
from app.models.session import MAX_CHUNK, Block, Reading
from app.run.settings import Sampling


class DraftModel:
    """Drafts with the session of the role `draft`."""

    def __init__(
        self,
        *,
        sampling: Sampling,
        widths: DraftWidths,
        context: int,
        device: torch.device,
        prompt_length: int,
        end_ids: Collection[int],
    ) -> None:
        self._sampling = sampling
        self._widths = widths
        self._context = context
        self._device = device
        self._end_ids = frozenset(end_ids)
        self._penalties = Penalties(sampling, prompt_length)
        self._prompt_read = False

    def propose(self, text: Sequence[int], *, limit: int, round_: int) -> Asking:
        """Draws at most `limit` tokens, one pass each; their ids stay on the device."""
        limit, stop = self._limit(text, limit)
        if limit <= 0:
            return Draft(Block(), stop=stop)
        known = self._readable(text)
        block = Block(device=self._device)
        laws: list[Tensor] = []
        finite: list[Tensor] = []
        yield from self._catch_up(known)
        for slot in range(limit):
            reading = yield Read("draft", known, len(known), block, prompt=not self._prompt_read)
            assert isinstance(reading, Reading)
            self._prompt_read = True
            logits = self._logits(reading, text, block)
            finite.append(torch.isfinite(logits.amax()))
            block.append(self._choose(logits, laws, round_, slot))
            if self._ended(block):
                stop = "end of text"
                break
        law = torch.stack(laws) if laws else None
        return Draft(block, law, "draft-model", stop, finite=torch.stack(finite).all())

    def _limit(self, text: Sequence[int], limit: int) -> tuple[int, str]:
        """The limit within the draft's own context and vocabulary, and why it is lower."""
        if text[-1] >= self._widths.draft_rows:
            return 0, "the draft model does not know the last token"
        room = self._context - len(text) + 1
        return (limit, "") if limit <= room else (room, "the draft model's context is full")

    def _readable(self, text: Sequence[int]) -> Sequence[int]:
        """The text with ids that the draft cannot read replaced by 0: only acceptance suffers."""
        rows = self._widths.draft_rows
        if rows >= self._widths.target_width:
            return text
        return [token if token < rows else 0 for token in text]

    def _catch_up(self, text: Sequence[int]) -> Asking:
        """Reads what is longer than one chunk, so that a stop takes effect within one pass."""
        unread = yield Unread("draft", text)
        assert isinstance(unread, int)
        start = len(text) - unread
        for upto in range(start + MAX_CHUNK, len(text), MAX_CHUNK):
            yield Read("draft", text, upto, prompt=not self._prompt_read)
        return Draft(Block())

    def _logits(self, reading: Reading, text: Sequence[int], block: Block) -> Tensor:
        """Penalised fp32 logits [target width]; ids that are not shared have none."""
        ids = min(self._widths.shared_ids, reading.logits.shape[-1])
        logits = reading.logits[-1:].new_full(
            (1, self._widths.target_width), -torch.inf, dtype=torch.float32
        )
        logits[:, :ids] = reading.logits[-1:, :ids].float()
        return self._penalties.apply(logits, text, block)[0]

    def _choose(self, logits: Tensor, laws: list[Tensor], round_: int, slot: int) -> Tensor:
        """One token, and the law it was drawn from."""
        if self._sampling.greedy:
            return logits.argmax()
        laws.append(warp(logits[None], self._sampling)[0])
        return pick(laws[-1], draw(self._sampling.seed, "draft", round_, slot))

    def _ended(self, block: Block) -> bool:
        """Whether the last guess ends the text; asked only where the answer costs no waiting."""
        return self._device.type == "cpu" and int(block.tensor(len(block) - 1)) in self._end_ids
