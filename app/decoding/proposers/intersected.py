"""A draft model of another vocabulary guesses within the tokens that its target knows too.

Source: token-level intersection, Timor et al. 2025 (arXiv 2502.05202), algorithm 4. The draft's law
over the shared tokens is renormalised and is a law of the target's ids, so that any rule holds with
it. Penalties are those of the target's text, token by token.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from app.decoding.contracts import Asking
from app.decoding.draft_stop import DraftStop
from app.decoding.proposers.draft_model import DraftModel
from app.models.pair import DraftWidths
from app.models.retold import Retold
from app.models.session import Block
from app.models.vocabulary_bridge import VocabularyBridge
from app.run.settings import Sampling


class Intersected(DraftModel):
    """Drafts with the session of the role `draft`, which reads the text in the draft's own ids."""

    source = "tli"

    def __init__(
        self,
        *,
        sampling: Sampling,
        bridge: VocabularyBridge,
        retold: Retold,
        widths: DraftWidths,
        context: int,
        device: torch.device,
        prompt_length: int,
        end_ids: Collection[int],
        shared_noise: bool = False,
        stop: DraftStop | None = None,
        room: int | None = None,
    ) -> None:
        """`context` and `room` count the draft's own tokens; the prompt's length the target's.
        `retold` may have followed a start of the text.
        """
        super().__init__(
            sampling=sampling,
            widths=widths,
            context=context,
            device=device,
            prompt_length=prompt_length,
            end_ids=end_ids,
            shared_noise=shared_noise,
            stop=stop,
            room=room,
        )
        self._bridge = bridge
        self._shared = bridge.on(device, widths.target_width)
        self._own_ids = self._shared.own
        self._retold = retold
        self._known: list[int] = []
        self._guessed = Block()
        """The guesses of the round before; their ids have come home with its verdict."""

    def propose(self, text: Sequence[int], *, limit: int, round_: int) -> Asking:
        """Makes at most `limit` guesses, one pass each."""
        if len(self._guessed):
            self._fed.settle([self._bridge.own[token] for token in self._guessed.ids])
        draft = yield from super().propose(text, limit=limit, round_=round_)
        self._guessed = draft.block
        return draft

    def limit(self, text: Sequence[int], limit: int) -> tuple[int, str]:
        """The limit, unless the draft's vocabulary cannot write the end of the text."""
        self._known = self._retold.follow(text)
        if not self._known:
            return 0, "the draft model cannot write the end of the text"
        return limit, ""

    def length(self, text: Sequence[int]) -> int:
        """Tokens of the text in the draft's own ids, as `limit` has found them."""
        return len(self._known)

    def readable(self, text: Sequence[int]) -> Sequence[int]:
        """The text in the draft's ids, as `limit` has found it."""
        return self._known

    def scores(self, logits: Tensor, text: Sequence[int], block: Block) -> Tensor:
        """Penalised fp32 logits [target width]; tokens that are not shared have none."""
        shared = logits.index_select(0, self._shared.draft).float()
        whole = logits.new_full((1, self._widths.target_width), -torch.inf, dtype=torch.float32)
        whole.index_copy_(1, self._shared.target, shared[None])
        return self._penalties.apply(whole, text, block)[0]
