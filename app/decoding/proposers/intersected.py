"""A draft model of another vocabulary guesses within the tokens that its target knows too.

Source: token-level intersection, Timor et al. 2025 (arXiv 2502.05202), algorithm 4. The draft's law
over the shared tokens is renormalised and is a law of the target's ids, so that any rule holds with
it. Penalties are those of the target's text, token by token.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from app.decoding.contracts import Asking
from app.decoding.proposers.draft_model import DraftModel, DraftSetup
from app.decoding.proposers.pickings import BridgedPicking, law_of, translated_scores
from app.models.block import Block
from app.models.picking import Picking
from app.models.retold import Retold
from app.models.vocabulary_bridge import VocabularyBridge


class Intersected(DraftModel):
    """Drafts with the session of the role `draft`, which reads the text in the draft's own ids."""

    source = "tli"

    def __init__(self, setup: DraftSetup, bridge: VocabularyBridge, retold: Retold) -> None:
        """Context and room of the set-up count the draft's own tokens; its prompt's length the
        target's. `retold` may have followed a start of the text.
        """
        super().__init__(setup)
        self._bridge = bridge
        self._shared = bridge.on(setup.device, setup.widths.target_width)
        self._own_ids = self._shared.own
        self._retold = retold
        self._known: list[int] = []
        """The text of this round in the draft's ids; empty where they cannot write it."""
        self._guessed = Block()
        """The guesses of the round before; their ids have come home with its verdict."""

    def propose(self, text: Sequence[int], *, limit: int, round_: int) -> Asking:
        """Makes at most `limit` guesses, one pass each or all at once."""
        if len(self._guessed):
            self._fed.settle([self._bridge.own[token] for token in self._guessed.ids])
        self._known = self._retold.follow(text)
        draft = yield from super().propose(text, limit=limit, round_=round_)
        self._guessed = draft.block
        return draft

    def limit(self, text: Sequence[int], limit: int) -> tuple[int, str]:
        """The limit, unless the draft's vocabulary cannot write the end of the text."""
        if not self._known:
            return 0, "the draft model cannot write the end of the text"
        return limit, ""

    def length(self, text: Sequence[int]) -> int:
        """Tokens of the text in the draft's own ids."""
        return len(self._known)

    def readable(self, text: Sequence[int]) -> Sequence[int]:
        """The text in the draft's ids."""
        return self._known

    def scores(self, logits: Tensor, text: Sequence[int], block: Block) -> Tensor:
        """Penalised fp32 logits [target width]; tokens that are not shared have none."""
        whole = translated_scores(logits, self._shared, self._width)
        return self._penalties.apply(whole[None], text, block)[0]

    def picking(self) -> Picking:
        """As they are taken one by one."""
        return BridgedPicking(law_of(self._sampling), self._width, self._bridge, self._shared)
