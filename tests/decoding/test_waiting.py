"""A round waits for the device once, when its verdict comes home.

Tensors on the device `meta` have no values: whatever asks one for its value, as a hidden wait for a
card would, raises.
"""

import pytest
import torch

from app.decoding.contracts import Draft, Read, TargetRows
from app.decoding.loop import decode, draws_on
from app.decoding.proposers.draft_head import HeadSetup
from app.decoding.proposers.draft_model import DraftModel, DraftSetup
from app.decoding.proposers.head_tree import HeadTree
from app.decoding.proposers.ngram import Ngram
from app.decoding.proposers.suffix import Suffix
from app.decoding.sampling import Penalties
from app.decoding.verifiers import make_verifier
from app.models.attention import Masks
from app.models.pair import DraftWidths
from app.models.session import Reading
from app.run.rules import RULES
from app.run.settings import Sampling
from toys import FakeClock, Script, make_lane, next_is

META = torch.device("meta")
WIDTH = 5000
TEXT = [1, 2, 3, 1, 2]

SAMPLINGS = [
    Sampling(),
    Sampling(repetition_penalty=1.3, presence_penalty=0.7),
    Sampling(temperature=0.8, top_k=40, top_p=0.9, min_p=0.05, repetition_penalty=1.3),
]


def drafted(proposer) -> Draft:
    """What a proposer makes of readings without values."""
    asking = proposer.propose(TEXT, limit=3, round_=0)
    answer = None
    while True:
        try:
            request = asking.send(answer)
        except StopIteration as done:
            return done.value
        answer = len(TEXT)
        if isinstance(request, Read):
            answer = Reading(torch.empty(request.rows, WIDTH, device=META))


def draft_model(sampling: Sampling) -> DraftModel:
    setup = DraftSetup(
        sampling=sampling,
        widths=DraftWidths(WIDTH, WIDTH, WIDTH),
        context=64,
        device=META,
        prompt_length=2,
        end_ids=[7],
    )
    return DraftModel(setup)


def head_tree(sampling: Sampling) -> HeadTree:
    return HeadTree(
        HeadSetup(
            sampling=sampling,
            ids=torch.arange(WIDTH, device=META),
            width=WIDTH,
            prompt_length=2,
            end_ids=[7],
        ),
        nodes=12,
        breadth=3,
    )


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_tree_is_grown_read_and_decided_without_asking_the_device(sampling):
    draft = drafted(head_tree(sampling))
    assert len(draft) == 12
    assert draft.block.tree.parents.device == META
    like = torch.empty(0, device=META)
    mask = Masks(4, 17, like, tree=draft.block.tree).of(6)
    assert mask.shape == (13, 17)
    logits = torch.empty(len(draft) + 1, WIDTH, device=META)
    rows = TargetRows(Penalties(sampling, 2).apply(logits, TEXT, draft.block), sampling)
    draws = draws_on([0.5] * (len(draft) + 1), META)
    for name, rule in RULES.items():
        if rule.branches and (name != "greedy" or sampling.greedy):
            verdict = make_verifier(name, sampling).verify(draft, rows, draws)
            told = (verdict.accepted, verdict.next, verdict.kept, verdict.tested, rows.peaks)
            assert {tensor.device for tensor in told} == {META}


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("method", ["ngram", "suffix", "draft-model"])
def test_nothing_of_a_round_asks_the_device_before_the_end(method, sampling):
    ngram = Ngram(shortest=1, longest=2, end_ids=[], device=META)
    suffix = Suffix(depth=8, factor=2.0, offset=0.0, least_probability=0.0, end_ids=[], device=META)
    copying = {"ngram": ngram, "suffix": suffix}
    draft = drafted(copying.get(method) or draft_model(sampling))
    assert len(draft) == 3
    assert draft.block.tensor().device == META
    logits = torch.empty(len(draft) + 1, WIDTH, device=META)
    logits = Penalties(sampling, 2).apply(logits, TEXT, draft.block)
    rows = TargetRows(logits, sampling)
    draws = draws_on([0.5] * (len(draft) + 1), META)
    for name in RULES:
        if name != "greedy" or sampling.greedy:
            verdict = make_verifier(name, sampling).verify(draft, rows, draws)
            assert {verdict.accepted.device, verdict.next.device, rows.peaks.device} == {META}


def test_the_seconds_of_every_chunk_of_a_prompt_count():
    # D02: a card goes on reading while the loop's events are looked at.
    class Card(FakeClock):
        busy_until = 0.0

        def wait(self):
            self.time = max(self.time, self.busy_until)

    clock = Card()

    class Queued(Script):
        def answer(self, request):
            clock.busy_until = max(clock.time, clock.busy_until) + 1.0
            if request.upto == len(request.text):
                clock.wait()  # the verdict's copy home
            return super().answer(request)

    lane = make_lane([1] * 1300, clock=clock, max_new_tokens=1)
    reader = Queued(next_is(lambda prefix: 5))
    steps, answer = decode(lane), None
    while True:
        step = steps.send(answer)
        answer = reader.answer(step) if isinstance(step, Read) else None
        if type(step).__name__ == "FirstToken":
            assert step.seconds == pytest.approx(3.0)
            return
        clock.spend(100.0 if answer is None else 0.0)
