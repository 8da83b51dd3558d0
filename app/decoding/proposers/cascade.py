"""A draft model that is itself helped by n-grams: a speculative loop inside the draft.

Source: the vertical cascade of Chen et al. 2023 (arXiv 2312.11462). The draft model reads copies of
the text in one pass. In each slot it draws its own token, with the draw that it would have used
alone, and a copy is kept while it is that token: for guesses that are certain, sample and match is
the same law as speculative sampling. So the draft is token for token that of the draft model alone,
each token with the law that it was drawn from, and the outer rule is as exact as with that.

What is copied next depends on what was kept, so every inner pass needs a copy to the host, on a
graphics card too; in return it may yield several guesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from itertools import takewhile

from torch import Tensor

from app.decoding.contracts import Asking, Draft, Read
from app.decoding.proposers.draft_model import DraftModel, DraftSetup
from app.decoding.proposers.ngram import Ngram
from app.decoding.proposers.one_by_one import Guess, catch_up
from app.decoding.sampling import warp
from app.models.block import Block
from app.models.session import Reading


class Cascade(DraftModel):
    """Drafts with the session of the role `draft`, several tokens a pass where the text repeats."""

    source = "cascade"

    def __init__(self, ngram: Ngram, setup: DraftSetup) -> None:
        """`ngram` guesses for the draft model."""
        super().__init__(setup)
        self._ngram = ngram

    @property
    def chains(self) -> None:
        """None: what is copied next depends on what was kept."""

    def propose(self, text: Sequence[int], *, limit: int, round_: int) -> Asking:
        """Makes at most `limit` guesses, at least one a pass."""
        limit, stop, room = self.limits(text, limit)
        if limit <= 0:
            return Draft(Block(), stop=stop, room=room)
        known = self.readable(text)
        ids: list[int] = []
        made: list[Guess] = []
        ended = ""
        yield from catch_up(self.role, known, prompt=not self._prompt_read)
        while len(made) < limit and not ended:
            # A pass draws one token more than it reads copies.
            copied = self._copied(text, ids, limit - len(ids) - 1)
            reading = yield Read(
                self.role,
                [*known, *ids],
                len(known) + len(ids),
                Block(copied, device=self._device),
                rows=len(copied) + 1,
                prompt=not self._prompt_read,
            )
            assert isinstance(reading, Reading)
            self._prompt_read = True
            scores = self.rows(reading.logits, text, Block([*ids, *copied], device=self._device))
            ended = self._keep(made, ids, scores, copied=copied, text=text, round_=round_)
        block = Block(ids, device=self._device)
        return self.drafted(block, made, stop=ended or stop, room=room)

    def _copied(self, text: Sequence[int], ids: Sequence[int], limit: int) -> list[int]:
        """What the text suggests behind these guesses, as far as the draft model knows the ids."""
        known = min(self._widths.shared_ids, self._widths.draft_rows)
        return list(takewhile(lambda token: token < known, self._ngram.guesses(text, ids, limit)))

    def _keep(
        self,
        made: list[Guess],
        ids: list[int],
        scores: Tensor,
        *,
        copied: Sequence[int],
        text: Sequence[int],
        round_: int,
    ) -> str:
        """Draws a token in each slot, and adds those up to the first that is not the copied one.
        Returns why the draft ends behind them; empty to go on.
        """
        laws = None if self._sampling.greedy else warp(scores, self._sampling)
        if laws is None:
            tokens = scores.argmax(dim=-1)
        else:
            tokens = self._draws.picks(laws, text, round_=round_, slot=len(ids))
        peaks = scores.amax(dim=-1)
        for row, token in enumerate(tokens.tolist()):
            law = cache(partial(self._belief, scores[row]))
            if ended := self._stop.before(law) if self._stop else "":
                return ended
            made.append(Guess(tokens[row], None if laws is None else laws[row], peaks[row]))
            ids.append(token)
            if token in self._end_ids:
                return "end of text"
            if ended := self._behind(made[-1], law):
                return ended
            if row < len(copied) and copied[row] != token:
                break
        return ""
