"""A round waits for a card once: for its verdict, whatever guesses and whatever decides.

Whole lanes on a card that `card_stand_in` stands in for; it sees what would wait for a real one.
"""

from __future__ import annotations

import pytest
import torch
from card_stand_in import CARD, Card, CardEvent, OnCard, put_on_card
from whole_lanes import PROMPT, WholeLanes

from app.decoding.clock import EventClock
from app.decoding.contracts import Chain, Draft, TargetRows, WholeTree
from app.decoding.decision import bring_home
from app.decoding.draft_stop import ConfidenceStop, EntropyStop
from app.decoding.drivers import run_lane
from app.decoding.loop import decode, draws_on
from app.decoding.sampling import Penalties
from app.decoding.shared_noise import SharedNoise
from app.decoding.verifiers import make_verifier
from app.models.block import Block
from app.models.session import Session
from app.run.methods import METHODS
from app.run.rules import RULES
from app.run.settings import Sampling
from toys import draft_model, make_lane, sessions, tiny_llama

SAMPLINGS = [
    Sampling(),
    Sampling(repetition_penalty=1.2, presence_penalty=0.3),
    Sampling(temperature=0.8, top_k=40, top_p=0.9, min_p=0.05, repetition_penalty=1.2, seed=3),
]
DRAWN = Sampling(temperature=0.8, top_k=40, top_p=0.9, min_p=0.05, seed=3)
NUCLEUS = Sampling(temperature=0.8, top_p=0.9)
WIDTH = 3000
"""More than a CPU sorts at once for a nucleus: a card sorts them all."""


@pytest.fixture
def card():
    with Card() as card:
        yield card


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def lanes(home):
    return WholeLanes(home, CARD, put_on_card)


def waits_of_rounds(card, proposer, both, *, sampling, **changes):
    """Why each round of a lane waited, and how many guesses it tested."""
    clock = EventClock(lambda enable_timing: CardEvent(card))
    lane = make_lane(
        PROMPT,
        proposer=proposer,
        sampling=sampling,
        clock=clock,
        device=CARD,
        max_new_tokens=10,
        draft_length=3,
        **changes,
    )
    rounds = []
    card.drawn.clear()
    for event in run_lane(decode(lane), both, lambda: None):
        if type(event).__name__ == "RoundCommitted":
            rounds.append((event.round, [*card.waits]))
        card.waits.clear()
    assert len(rounds) > 2
    assert card.drawn == []  # graphs need the state of the card's generator for draws alone
    return rounds


HOME = "_to_copy: numbers come home"


@pytest.mark.parametrize("sampling", SAMPLINGS[1:])
@pytest.mark.parametrize("method", sorted(METHODS.keys() - {"cascade", "slem"}))
def test_a_round_waits_once_whatever_guesses(card, lanes, method, sampling):
    proposer, both = lanes.guessing(method, sampling)
    rounds = waits_of_rounds(card, proposer, both, sampling=sampling)
    assert sum(round_.drafted for round_, _ in rounds) > 0 or method == "nothing"
    for _, waits in rounds:
        assert waits == [HOME]


AS_A_WHOLE = [
    (method, sampling)
    for method in ("draft-model", "early-exit", "tli", "head", "head-tree")
    for sampling in (*SAMPLINGS, DRAWN)
]


@pytest.mark.parametrize(("method", "sampling"), AS_A_WHOLE)
def test_a_draft_that_is_made_as_a_whole_waits_for_nothing(card, lanes, method, sampling):
    proposer, both = lanes.guessing(method, sampling, chained=True)
    answer, within = both.answer, []

    def watched(request):
        before = len(card.waits)
        found = answer(request)
        if isinstance(request, (Chain, WholeTree)):
            within.append((found is not None, card.waits[before:]))
        return found

    both.answer = watched
    rounds = waits_of_rounds(card, proposer, both, sampling=sampling)
    assert [waits for _, waits in rounds] == [[HOME]] * len(rounds)
    assert within == [(True, [])] * len(within) != []


class Recorder:
    """Records on the card that is stood in for, which refuses what no graph can hold."""

    def __init__(self, card):
        self._card = card
        self.recorded = self.replayed = 0

    def record(self, run):
        run()
        with self._card.recording():
            run()
        self.recorded += 1

        def replay():
            self.replayed += 1
            run()

        return replay


@pytest.mark.parametrize("sampling", [*SAMPLINGS, DRAWN])
@pytest.mark.parametrize("method", ["draft-model", "early-exit", "head"])
def test_passes_and_chains_are_recorded_without_waiting_or_copying(card, lanes, method, sampling):
    made = []

    def recorder():
        made.append(Recorder(card))
        return made[-1]

    proposer, both = lanes.guessing(method, sampling, chained=True, recorder=recorder)

    def advance(done, total):
        pass

    role = proposer.chains.role
    for one in both._sessions:
        both.prepare(one, 4, behind=len(PROMPT) - 1, advance=advance)
    both.prepare_chain(role, [3], proposer.picking(), behind=len(PROMPT) - 1, advance=advance)
    for one in both._sessions.values():
        if isinstance(one, Session):
            assert one.model._passes.said == "captured graphs"
    rounds = waits_of_rounds(card, proposer, both, sampling=sampling)
    assert [waits for _, waits in rounds] == [[HOME]] * len(rounds)
    assert len(made) == (1 if method == "early-exit" else 2)  # which works in the target's room
    assert all(one.recorded > 1 and one.replayed > 2 for one in made)


@pytest.mark.parametrize("sampling", [*SAMPLINGS, DRAWN])
def test_trees_are_recorded_without_waiting_or_copying(card, lanes, sampling):
    made = []

    def recorder():
        made.append(Recorder(card))
        return made[-1]

    proposer, both = lanes.guessing("head-tree", sampling, chained=True, recorder=recorder)
    quiet = {"behind": len(PROMPT) - 1, "advance": lambda done, total: None}
    both.prepare("target", 9, **quiet)
    both.prepare_trees("head", [3], proposer.trees.how, **quiet)
    assert both._sessions["target"].model._passes.said == "captured graphs"
    answer, grown = both.answer, []

    def watched(request):
        found = answer(request)
        if isinstance(request, WholeTree):
            grown.append(found is not None)
        return found

    both.answer = watched
    rounds = waits_of_rounds(card, proposer, both, sampling=sampling)
    assert [waits for _, waits in rounds] == [[HOME]] * len(rounds)
    assert sum(grown) > 0
    assert len(made) == 2
    assert all(one.recorded > 1 and one.replayed > 2 for one in made)


@pytest.mark.parametrize("sampling", SAMPLINGS[1:])
def test_a_cascade_waits_once_more_for_each_of_its_passes(card, lanes, sampling):
    proposer, both = lanes.guessing("cascade", sampling)
    for round_, waits in waits_of_rounds(card, proposer, both, sampling=sampling):
        assert set(waits) == {HOME}
        assert len(waits) <= 1 + round_.drafted


@pytest.mark.parametrize("sampling", SAMPLINGS[1:])
def test_text_that_is_cut_anew_comes_home_once_more(card, lanes, sampling):
    proposer, both = lanes.guessing("slem", sampling)
    for _, waits in waits_of_rounds(card, proposer, both, sampling=sampling):
        assert set(waits) == {HOME}
        assert len(waits) <= 2


@pytest.mark.parametrize("sampling", SAMPLINGS[1:])
@pytest.mark.parametrize("method", ["draft-model", "head"])
@pytest.mark.parametrize("stop", [ConfidenceStop(0.0), EntropyStop(0.1, -9.0)])
def test_a_stop_asks_for_one_number_a_guess(card, lanes, method, stop, sampling):
    proposer, both = lanes.guessing(method, sampling, stop=stop)
    for round_, waits in waits_of_rounds(card, proposer, both, sampling=sampling):
        asked = "_local_scalar_dense: a number is asked for"
        assert waits == [asked] * round_.drafted + [HOME]


@pytest.mark.parametrize("sampling", SAMPLINGS[1:])
def test_a_draft_made_on_the_cpu_goes_to_the_card_without_waiting(card, lanes, sampling):
    made = draft_model(width=64, sampling=sampling, prompt_length=len(PROMPT))
    both = sessions(lanes.model(1), tiny_llama(1, noise=0.05))
    rounds = waits_of_rounds(card, made, both, sampling=sampling)
    assert sum(round_.drafted for round_, _ in rounds) > 0
    for _, waits in rounds:
        assert waits == [HOME]


def draft_of(kind, sampling):
    """Four guesses that the target's rows below are of two minds about."""
    ids, parents = (torch.tensor(values).to(CARD, non_blocking=True) for values in (IDS, PARENTS))
    if kind == "tree":
        block = Block(device=CARD)
        block.branch(ids, parents, levels=2)
        return Draft(block)
    law = torch.softmax(torch.randn(4, WIDTH, generator=seeded(5)), dim=-1)
    drawn = kind == "drawn" and not sampling.greedy
    peaks = OnCard(torch.ones(4)) if kind == "drawn" else None
    return Draft(Block(IDS, device=CARD), OnCard(law) if drawn else None, peaks=peaks)


IDS, PARENTS = [5, 6, 7, 8], [-1, -1, 0, 1]


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def decided(card, rule, kind, sampling, detail="light"):
    """What a rule decides of four guesses on a card, with its numbers at home."""
    draft = draft_of(kind, sampling)
    logits = 3.0 * torch.randn(len(draft) + 1, WIDTH, generator=seeded(3))
    logits[0, 6] += 9.0
    card.kernels.clear()
    penalties = Penalties(sampling, 2)
    rows = TargetRows(penalties.apply(OnCard(logits), [1, 2, 3, 4], draft.block), sampling)
    draws = draws_on([0.5] * (len(draft) + 1), CARD, SharedNoise(1, 4))
    verdict = make_verifier(rule, sampling, draft_length=4).verify(draft, rows, draws)
    return bring_home(draft, rows, verdict, detail=detail)


@pytest.mark.parametrize("detail", ["light", "full"])
@pytest.mark.parametrize("sampling", [SAMPLINGS[0], SAMPLINGS[2], NUCLEUS])
@pytest.mark.parametrize("kind", ["drawn", "certain", "tree"])
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_decides_without_waiting(card, rule, kind, sampling, detail):
    if (rule == "greedy" and not sampling.greedy) or (kind == "tree" and not RULES[rule].branches):
        pytest.skip("not on offer")
    decision = decided(card, rule, kind, sampling, detail)
    assert card.waits == [HOME]
    assert decision.finite
    assert decision.draft_finite
    assert 0 <= decision.next < WIDTH


MOST_KERNELS = {
    ("greedy", "certain", 0): 13,
    ("exact", "drawn", 1): 36,
    ("exact", "drawn", 2): 46,
    ("exact", "certain", 1): 38,
    ("exact", "tree", 1): 80,
}
"""Of a rule, a kind of draft and a place among the samplings below, how many operations a round's
verdict is given at most: what torch launches one by one is time that a card stands still.
"""


@pytest.mark.parametrize(("asked", "most"), MOST_KERNELS.items())
def test_a_verdict_is_few_operations(card, asked, most):
    rule, kind, place = asked
    drawn = Sampling(temperature=0.8)
    sampling = [Sampling(), drawn, NUCLEUS][place]
    decided(card, rule, kind, sampling)
    assert sum(card.kernels.values()) <= most, card.kernels


def test_a_nucleus_within_the_likeliest_k_sorts_nothing(card):
    decided(card, "exact", "drawn", Sampling(temperature=0.8, top_k=40, top_p=0.9))
    assert "sort" not in card.kernels
    assert card.kernels["topk"] == 1
