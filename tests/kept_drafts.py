"""What a lane was given to decide on, and what it decided: to compare two ways of guessing."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from app.decoding.contracts import Chain, WholeTree
from app.decoding.verifiers import make_verifier
from app.run.identities import violations
from app.run.settings import Sampling
from toys import make_lane, run

NEAR = 1e-5
"""How far laws and peaks may differ that passes of different widths stand for."""


class Kept(NamedTuple):
    """A draft as a rule was given it."""

    ids: list[int]
    parents: list[int] | None
    """Of a tree: which guess each stands behind."""
    law: Tensor | None
    stop: str
    peaks: Tensor | None


def quiet(done: int, total: int) -> None:
    """Is told of what is recorded, and goes on."""


class Watched:
    """A rule that keeps every draft that it was given."""

    def __init__(self, sampling: Sampling) -> None:
        self._rule = make_verifier("exact", sampling)
        self.name = self._rule.name
        self.drafts = []

    def verify(self, draft, rows, draws):
        tree = draft.block.tree
        parents = None if tree is None else tree.parents.tolist()
        law = None if draft.law is None else draft.law.clone()
        peaks = None if draft.peaks is None else draft.peaks.clone()
        ids = draft.block.tensor().tolist()
        self.drafts.append(Kept(ids, parents, law, draft.stop, peaks))
        return self._rule.verify(draft, rows, draws)


class Counted:
    """A reader that counts the chains and trees which were asked for as a whole, and those which
    were made.
    """

    def __init__(self, reader) -> None:
        self._reader = reader
        self.asked = self.made = 0

    def answer(self, request):
        found = self._reader.answer(request)
        if isinstance(request, Chain | WholeTree):
            self.asked += 1
            self.made += found is not None
        return found


def told(repetition):
    """All that was decided, without the seconds."""
    return [
        (one.index, one.limit, one.limited_by, one.nodes, one.draft_stop, _statuses(one))
        for one in repetition.rounds
    ]


def _statuses(one):
    return [
        (token.id, token.status, token.source, token.tried)
        for token in (*one.committed, *one.thrown)
    ]


def same_drafts(mine, theirs):
    for one, other in zip(mine, theirs, strict=True):
        assert (one.ids, one.parents, one.stop) == (other.ids, other.parents, other.stop)
        assert _near(one.law, other.law)
        assert _near(one.peaks, other.peaks)
        assert one.peaks is None or one.peaks.isfinite().all()


def _near(one, other):
    if one is None or other is None:
        return one is other
    return torch.allclose(one, other, atol=NEAR, rtol=NEAR)


def watched(prompt, proposer, reader, sampling, length, *, tokens, end_ids=()):
    """What a lane writes, its drafts as the rule was given them, and its reader."""
    rule = Watched(sampling)
    lane = make_lane(
        prompt,
        proposer=proposer,
        sampling=sampling,
        draft_length=length,
        max_new_tokens=tokens,
        verifier=rule,
        end_ids=end_ids,
    )
    found = run(lane, reader)
    assert violations(found) == []
    return found, rule.drafts, reader
