"""A trained layer guesses from the target's own features, token by token (a chain).

Source: EAGLE, Li et al. 2024 (arXiv 2401.15077), section 3. The law of a guess is the head's, at
the run's sampling settings, over the tokens that it can guess; any other token has probability 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from app.decoding.contracts import row_at
from app.decoding.draft_stop import DraftStop
from app.decoding.proposers.one_by_one import Guess, OneByOne
from app.decoding.proposers.pickings import HeadPicking, law_of, spread
from app.decoding.sampling import Penalties
from app.models.block import Block
from app.models.picking import Picking
from app.run.settings import Sampling

NO_FEATURE = "there is no feature to guess from yet"
"""Why nothing is guessed behind a text of one token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSetup:
    """What every proposer that asks a head, or a target's own modules, is made of."""

    sampling: Sampling
    ids: Tensor
    """[vocabulary] the target's, of the tokens that the head can guess."""
    width: int
    """Logits a row of the target."""
    prompt_length: int
    end_ids: Collection[int]

    def scores(
        self, logits: Tensor, text: Sequence[int], block: Block, *, penalties: Penalties
    ) -> Tensor:
        """Penalised fp32 logits [rows, vocabulary] behind the last guesses of a block, over the
        tokens that the head can guess.
        """
        logits = logits.float()
        if not penalties.active:
            return logits
        whole = logits.new_full((len(logits), self.width), -torch.inf)
        whole[:, self.ids] = logits
        return penalties.apply(whole, text, block)[:, self.ids]


class DraftHead(OneByOne):
    """Drafts with the session of the role `head`: a draft head, or a target's own modules."""

    role = "head"

    def __init__(
        self,
        setup: HeadSetup,
        *,
        length: int = 0,
        shared_noise: bool = False,
        stop: DraftStop | None = None,
        source: str = "head",
        chained: bool = False,
    ) -> None:
        """A `length` above 0 limits every draft; its tokens are told apart by `source`. `chained`:
        the session may make whole chains of guesses by itself.
        """
        super().__init__(
            setup.ids.device,
            setup.end_ids,
            sampling=setup.sampling,
            prompt_length=setup.prompt_length,
            width=setup.width,
            stop=stop,
            shared_noise=shared_noise,
            chained=chained,
        )
        self._setup = setup
        self._length = length
        self.source = source

    def limit(self, text: Sequence[int], limit: int) -> tuple[int, str]:
        """The limit within the head's own, where there is a pair of tokens to guess from."""
        if len(text) < 2:
            return 0, NO_FEATURE
        return min(limit, self._length) if self._length else limit, ""

    def guess(
        self,
        scores: Tensor,
        law: Callable[[], Tensor],
        text: Sequence[int],
        *,
        round_: int,
        slot: int,
    ) -> Guess:
        """One token's id in the target, and the law it was drawn from."""
        peak = scores.amax()
        if self._sampling.greedy:
            return Guess(row_at(self._setup.ids, scores.argmax()), None, peak)
        own = law()
        whole = spread(own, self._setup.ids, self._setup.width)
        return Guess(self._draws.pick(whole, text, round_=round_, slot=slot), whole, peak)

    def picking(self) -> Picking:
        """As they are taken one by one."""
        return HeadPicking(law_of(self._sampling), self._setup.width, self._setup.ids)

    @property
    def longest(self) -> int | None:
        """The head's own length, if it has one."""
        return self._length or None

    def scores(self, logits: Tensor, text: Sequence[int], block: Block) -> Tensor:
        """Penalised logits [vocabulary] over the tokens that the head can guess."""
        return self._setup.scores(logits[None], text, block, penalties=self._penalties)[0]
