"""A draft made on one device and decided on another: it crosses once a round, and only then.

No machine with a CPU alone has two devices that compute, so the CPU is known here by two names:
"cpu", and "cpu:0" where the draft model is said to be. What is copied has no effect, but the copies
are counted. Tensors on `meta` show where things end up.
"""

import pytest
import torch

from app.decoding.contracts import Draft
from app.decoding.proposers import Surroundings, make_proposer
from app.models.block import Block
from app.models.pair import DraftWidths
from app.run.identities import violations
from app.run.metrics import counts
from app.run.settings import Sampling
from toys import FakeClock, draft_model, make_lane, run, sessions, tiny_llama

CPU, META = torch.device("cpu"), torch.device("meta")
SECOND = torch.device("cpu", 0)
SAMPLINGS = [Sampling(), Sampling(temperature=0.8, top_p=0.9, repetition_penalty=1.2, seed=3)]


def drafting(sampling, device):
    made = draft_model(width=64, sampling=sampling, prompt_length=3)
    made._device = device
    return made


def lane(sampling, device, **changes):
    proposer = drafting(sampling, device)
    return make_lane([3, 1, 4], proposer=proposer, sampling=sampling, **changes)


@pytest.fixture
def moves(monkeypatch):
    """Every time that ids leave a device for another: how many, and from where to where."""
    seen, move = [], Block.move

    def watched(block, device):
        if block.device != device:
            seen.append((len(block), block.device, device))
        move(block, device)

    monkeypatch.setattr(Block, "move", watched)
    return seen


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_the_text_is_that_of_one_device_and_guesses_cross_once_a_round(sampling, moves):
    target, draft = tiny_llama(1), tiny_llama(1, noise=0.02)
    together = run(lane(sampling, CPU), sessions(target, draft))
    assert moves == []
    apart = run(lane(sampling, SECOND), sessions(target, draft))
    assert apart.token_ids == together.token_ids
    assert violations(apart) == []
    assert counts(apart).accepted
    drafted = [round_.drafted for round_ in apart.rounds if round_.drafted]
    assert [length for length, *_ in moves if length] == drafted
    assert {(left, reached) for _, left, reached in moves} == {(SECOND, CPU)}


def test_all_of_a_draft_moves():
    block = Block(device=CPU)
    for token in (5, 6):
        block.append(torch.tensor(token))
    draft = Draft(block, torch.ones(2, 8), peaks=torch.zeros(2))
    draft.move(META)
    assert {tensor.device for tensor in (block.tensor(), draft.law, draft.peaks)} == {META}
    assert block.device == META
    assert len(block) == 2


def test_ids_that_have_come_to_the_host_are_not_fetched_again(monkeypatch):
    block = Block(device=SECOND)
    for token in (5, 6, 7):
        block.append(torch.tensor(token))
    block.move(CPU)
    monkeypatch.setattr(Block, "tensor", None)
    assert block.ids == [5, 6, 7]


def test_each_proposer_works_where_its_model_is():
    around = Surroundings(
        sampling=Sampling(),
        end_ids=(),
        prompt_length=2,
        device=CPU,
        draft_device=META,
        widths=DraftWidths(64, 64, 64),
        draft_context=64,
    )
    assert make_proposer("draft-model", {}, around)._device == META
    assert make_proposer("ngram", {}, around)._device == CPU


def test_the_passes_of_a_draft_are_timed_by_the_clock_of_its_own_device():
    # The target's clock stands still while the other device works, as a card's would.
    here, there = FakeClock(), FakeClock()
    target, draft = tiny_llama(1), tiny_llama(1)
    forward = draft.forward

    def slow(*args, **named):
        there.spend(0.25)
        return forward(*args, **named)

    draft.forward = slow
    made = lane(Sampling(), SECOND, draft_length=3, clock=here, draft_clock=there)
    rounds = run(made, sessions(target, draft)).rounds
    assert len(rounds) > 2
    for round_ in rounds[1:]:
        assert round_.phases.draft_calls == pytest.approx(0.25 * round_.drafted)
