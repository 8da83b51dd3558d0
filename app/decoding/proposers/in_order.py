"""Several proposers in order: the first that has a guess makes the draft.

Copying and composing want different guessers. One that was not asked for some rounds misses
nothing: it reads what has become text since, in one pass, when it is asked again.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.decoding.contracts import Asking, AsksForChains, Chained, Draft, Proposer
from app.models.block import Block


class InOrder:
    """Asks each proposer in turn, until one guesses."""

    def __init__(self, proposers: Sequence[Proposer]) -> None:
        self._proposers = proposers

    @property
    def chains(self) -> Chained | None:
        """What the first of them asks for that asks for any."""
        asking = (one.chains for one in self._proposers if isinstance(one, AsksForChains))
        return next((one for one in asking if one is not None), None)

    def propose(self, text: Sequence[int], *, limit: int, round_: int) -> Asking:
        """The first draft that is not empty; else the last one's, with its reason."""
        draft = Draft(Block())
        for proposer in self._proposers:
            draft = yield from proposer.propose(text, limit=limit, round_=round_)
            if len(draft):
                break
        return draft
