"""What a lane was given to decide on, and what it decided: to compare two ways of guessing."""

from __future__ import annotations

import torch

from app.decoding.contracts import Chain
from app.decoding.verifiers import make_verifier
from app.run.settings import Sampling

NEAR = 1e-5
"""How far laws and peaks may differ that passes of different widths stand for."""


class Watched:
    """A rule that keeps every draft that it was given."""

    def __init__(self, sampling: Sampling) -> None:
        self._rule = make_verifier("exact", sampling)
        self.name = self._rule.name
        self.drafts = []

    def verify(self, draft, rows, draws):
        law = None if draft.law is None else draft.law.clone()
        peaks = None if draft.peaks is None else draft.peaks.clone()
        self.drafts.append((draft.block.tensor().tolist(), law, draft.stop, peaks))
        return self._rule.verify(draft, rows, draws)


class Counted:
    """A reader that counts the chains which were asked for, and those which were made."""

    def __init__(self, reader) -> None:
        self._reader = reader
        self.asked = self.made = 0

    def answer(self, request):
        found = self._reader.answer(request)
        if isinstance(request, Chain):
            self.asked += 1
            self.made += found is not None
        return found


def told(repetition):
    """All that was decided, without the seconds."""
    return [
        (one.index, one.limit, one.limited_by, one.draft_stop, _statuses(one))
        for one in repetition.rounds
    ]


def _statuses(one):
    return [(token.id, token.status, token.source) for token in (*one.committed, *one.thrown)]


def same_drafts(mine, theirs):
    for (ids, law, stop, peaks), other in zip(mine, theirs, strict=True):
        assert (ids, stop) == (other[0], other[2])
        assert _near(law, other[1])
        assert _near(peaks, other[3])
        assert peaks is None or peaks.isfinite().all()


def _near(one, other):
    if one is None or other is None:
        return one is other
    return torch.allclose(one, other, atol=NEAR, rtol=NEAR)
