"""Trees that a card grows as one graph are those that are grown level by level."""

import pytest
import torch

from app.decoding.clock import clock_for
from app.decoding.contracts import WholeTree
from app.decoding.drivers import Sessions, run_lane
from app.decoding.loop import decode
from app.decoding.proposers.draft_head import HeadSetup
from app.decoding.proposers.head_tree import HeadTree
from app.models.fixed.choice import choose_passes
from app.models.fixed.recorder import watch_waits
from app.run.identities import violations
from app.run.metrics import counts
from app.run.settings import Sampling
from toys import make_lane, run, tiny_head, tiny_llama, wrapped

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no graphics card for torch"),
]

CARD = torch.device("cuda")
SAMPLINGS = [
    Sampling(),
    Sampling(temperature=0.8, top_p=0.9, seed=3),
    Sampling(repetition_penalty=1.3, presence_penalty=0.4),
]
SHAPES = [(1, 8, 3), (3, 8, 3), (6, 60, 10)]
"""Levels, most guesses, and breadth."""


class Counted:
    """A reader that counts the trees which were grown, and lets none of them wait for the card."""

    def __init__(self, reader) -> None:
        self._reader = reader
        self.grown = 0

    def answer(self, request):
        whole = isinstance(request, WholeTree)
        watch_waits("error" if whole else "default")
        try:
            found = self._reader.answer(request)
        finally:
            watch_waits("default")
        self.grown += whole and found is not None
        return found


def decoded(shape, sampling, *, at_once, tokens=60):
    """A lane whose trees are recorded, or grown level by level; both models are in fp32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    levels, nodes, breadth = shape
    target = wrapped(tiny_llama(1).inner.to(CARD))
    choose_passes(target, "auto")
    head = tiny_head(target, hears=0.3)
    setup = HeadSetup(sampling=sampling, ids=head.ids, width=64, prompt_length=3, end_ids=(7,))
    proposer = HeadTree(setup, nodes=nodes, breadth=breadth, at_once=at_once)
    session = head.open_target(400)
    both = Sessions({"target": session, "head": head.open(session, 400)})
    quiet = {"behind": 0, "advance": lambda done, total: None}
    both.prepare("target", nodes + 1, **quiet)
    if at_once:
        both.prepare_trees("head", [levels], proposer.trees.how, **quiet)
        assert target.passes.said == "captured graphs"
    lane = make_lane(
        [3, 1, 4],
        proposer=proposer,
        sampling=sampling,
        draft_length=levels,
        max_new_tokens=tokens,
        clock=clock_for(CARD),
        device="cuda",
    )
    return lane, Counted(both)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_texts_and_counts_are_those_of_level_by_level(shape, sampling):
    found = []
    for at_once in (False, True):
        lane, reader = decoded(shape, sampling, at_once=at_once)
        found.append(run(lane, reader))
        assert violations(found[-1]) == []
        assert (reader.grown > 4) == at_once
    alone, whole = found
    assert whole.token_ids == alone.token_ids
    assert counts(whole) == counts(alone)
    for one in whole.rounds[1:]:
        assert one.phases.draft >= one.phases.draft_calls > 0 or not one.nodes


def test_a_whole_tree_takes_less_time_than_its_levels():
    clock, spent = clock_for(CARD), []
    for at_once in (False, True):
        lane, reader = decoded(SHAPES[2], SAMPLINGS[0], at_once=at_once, tokens=200)
        rounds = [
            event.round
            for event in run_lane(decode(lane), reader, lambda: None)
            if type(event).__name__ == "RoundCommitted"
        ][2:]
        clock.wait()
        full = sorted(one.phases.draft for one in rounds if one.nodes and one.limit == 6)
        spent.append(full[len(full) // 2])
    assert spent[1] < spent[0]
