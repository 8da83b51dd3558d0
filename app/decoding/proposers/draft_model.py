"""A small model guesses, token by token, what the target would write.

Source: Leviathan et al. 2023 (arXiv 2211.17192), section 2.3. The draft draws by the sampling that
it is given, the run's own or another, and its law is handed on exactly as it was drawn from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from app.decoding.draft_stop import DraftStop
from app.decoding.proposers.one_by_one import Guess, OneByOne
from app.decoding.proposers.pickings import DraftPicking, law_of, shared_scores
from app.models.block import Block
from app.models.pair import DraftWidths
from app.models.picking import Picking
from app.run.settings import Sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftSetup:
    """What every proposer that asks a draft model is made of."""

    sampling: Sampling
    """What the draft draws by."""
    widths: DraftWidths
    context: int
    """Tokens that the draft model can read, in its own ids."""
    device: torch.device
    """The draft model's."""
    prompt_length: int
    """In the ids of the text that it guesses behind."""
    end_ids: Collection[int]
    shared_noise: bool = False
    """Whether guesses are drawn with the target's own noise, as the coupled rule asks."""
    stop: DraftStop | None = None
    """Ends drafts before their limit; None never does."""
    chained: bool = False
    """Whether its session may make whole chains of guesses by itself."""
    room: int | None = None
    """Tokens that its session holds, in its own ids; None: as many as it can read."""


class DraftModel(OneByOne):
    """Drafts with the session of the role `draft`."""

    role = "draft"
    source = "draft-model"

    def __init__(self, setup: DraftSetup) -> None:
        super().__init__(
            setup.device,
            setup.end_ids,
            sampling=setup.sampling,
            prompt_length=setup.prompt_length,
            width=setup.widths.target_width,
            stop=setup.stop,
            shared_noise=setup.shared_noise,
            chained=setup.chained,
        )
        self._widths = setup.widths
        self._context = setup.context
        self._room = setup.context if setup.room is None else setup.room

    def limit(self, text: Sequence[int], limit: int) -> tuple[int, str]:
        """The limit, unless the draft cannot read the last token."""
        if text[-1] >= self._widths.draft_rows:
            return 0, "the draft model does not know the last token"
        return limit, ""

    def room(self, text: Sequence[int]) -> int:
        """What the draft model's context leaves: it reads the text, and each guess but the last."""
        return self._context - self.length(text) + 1

    def length(self, text: Sequence[int]) -> int:
        """Tokens of the text as the draft model reads it."""
        return len(text)

    def limits(self, text: Sequence[int], limit: int) -> tuple[int, str, int | None]:
        """As for any; a session without room for more is no full context."""
        limit, stop, room = super().limits(text, limit)
        left = max(self._room - self.length(text) + 1, 0)
        if left < limit:
            return left, "the draft's session has no more room", room
        return limit, stop, room

    def readable(self, text: Sequence[int]) -> Sequence[int]:
        """The text with ids that the draft cannot read replaced by 0: only acceptance suffers."""
        rows = self._widths.draft_rows
        if rows >= self._widths.target_width:
            return text
        return [token if token < rows else 0 for token in text]

    def guess(
        self,
        scores: Tensor,
        law: Callable[[], Tensor],
        text: Sequence[int],
        *,
        round_: int,
        slot: int,
    ) -> Guess:
        """One token, and the law it was drawn from."""
        peak = scores.amax()
        if self._sampling.greedy:
            return Guess(scores.argmax(), None, peak)
        own = law()
        return Guess(self._draws.pick(own, text, round_=round_, slot=slot), own, peak)

    def scores(self, logits: Tensor, text: Sequence[int], block: Block) -> Tensor:
        """Penalised fp32 logits [target width]; ids that are not shared have none."""
        return self.rows(logits[None], text, block)[0]

    def rows(self, logits: Tensor, text: Sequence[int], block: Block) -> Tensor:
        """The same of several rows, those behind the block's last ids: [rows, target width]."""
        scores = shared_scores(logits, self._widths.shared_ids, self._width)
        return self._penalties.apply(scores, text, block)

    def picking(self) -> Picking:
        """As they are taken one by one."""
        return DraftPicking(law_of(self._sampling), self._width, self._widths.shared_ids)
