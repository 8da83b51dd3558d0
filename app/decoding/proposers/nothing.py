"""The proposer of plain decoding: it never guesses."""

from __future__ import annotations

from collections.abc import Sequence

from app.decoding.contracts import Asking, Draft
from app.models.block import Block


class Nothing:
    """Every round is a plain one; the baseline is the loop with this proposer."""

    def propose(self, text: Sequence[int], *, limit: int, round_: int) -> Asking:
        """Returns an empty draft."""
        return Draft(Block())
        yield  # makes this a generator, as the loop expects
