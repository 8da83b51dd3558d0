"""A round waits for the card once: torch itself raises where anything but the verdict is asked for.

The same rounds as in tests/decoding/test_one_wait.py, on a card; skipped without one.
"""

import warnings

import pytest
import torch
from whole_lanes import PROMPT, WholeLanes

from app.decoding.clock import clock_for
from app.decoding.drivers import run_lane
from app.decoding.loop import decode
from app.decoding.parcel import Parcel
from app.decoding.verifiers import make_verifier
from app.models.fixed.choice import choose_passes
from app.models.fixed.recorder import watch_waits
from app.run.methods import METHODS
from app.run.rules import RULES
from app.run.settings import Sampling
from toys import draft_model, make_lane, sessions, tiny_llama

CARD = torch.device("cuda", 0)
SAMPLINGS = [
    Sampling(),
    Sampling(repetition_penalty=1.2, presence_penalty=0.3),
    Sampling(temperature=0.8, top_p=0.9, seed=3),
    Sampling(temperature=0.8, top_k=40, top_p=0.9, min_p=0.05, repetition_penalty=1.2, seed=3),
]
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no graphics card for torch"),
]


@pytest.fixture(scope="module")
def lanes(tmp_path_factory):
    return WholeLanes(tmp_path_factory.mktemp("models"), CARD, lambda inner: inner.to(CARD))


@pytest.fixture
def copies(monkeypatch):
    """How often each verdict on its way home waits; to wait elsewhere in a round is an error."""
    counted, bring_home = [], Parcel.bring_home

    def allowed(parcel):
        before = torch.cuda.get_sync_debug_mode()
        watch_waits("warn")
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                return bring_home(parcel)
        finally:
            counted.append(sum("synchroniz" in str(one.message) for one in caught))
            watch_waits(before)

    monkeypatch.setattr(Parcel, "bring_home", allowed)
    yield counted
    watch_waits("default")


def rounds_of(proposer, both, *, sampling, **changes):
    """Runs a lane, its rounds in the mode in which a wait is an error; how many there were."""
    lane = make_lane(
        PROMPT,
        proposer=proposer,
        sampling=sampling,
        clock=clock_for(CARD),
        device=CARD,
        max_new_tokens=14,
        draft_length=3,
        **changes,
    )
    rounds = 0
    for event in run_lane(decode(lane), both, lambda: None):
        rounds += type(event).__name__ == "RoundCommitted"
        if type(event).__name__ == "FirstToken":
            watch_waits("error")
    watch_waits("default")
    return rounds


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("method", sorted(METHODS.keys() - {"cascade", "slem"}))
def test_only_the_verdict_is_waited_for_whatever_guesses(lanes, copies, method, sampling):
    proposer, both = lanes.guessing(method, sampling)
    rounds = rounds_of(proposer, both, sampling=sampling)
    assert rounds > 2
    assert copies == [1] * (rounds + 1)  # the prompt's pass has a verdict, too


@pytest.mark.parametrize("detail", ["light", "full"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("method", ["draft-model", "head-tree"])
@pytest.mark.parametrize("rule", RULES)
def test_only_the_verdict_is_waited_for_whatever_decides(
    lanes, copies, rule, method, sampling, detail
):
    tree = method == "head-tree"
    if (rule == "greedy" and not sampling.greedy) or (tree and not RULES[rule].branches):
        pytest.skip("not on offer")
    proposer, both = lanes.guessing(method, sampling)
    verifier = make_verifier(rule, sampling, draft_length=3)
    rounds = rounds_of(proposer, both, sampling=sampling, verifier=verifier, detail=detail)
    assert copies == [1] * (rounds + 1)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("method", ["draft-model", "head", "head-tree", "ngram"])
def test_only_the_verdict_is_waited_for_where_passes_are_graphs(
    lanes, copies, monkeypatch, method, sampling
):
    eager = lanes.model

    def captured(*args, **kwargs):
        model = eager(*args, **kwargs)
        choose_passes(model, "auto")
        assert model.passes.said == "captured graphs"
        return model

    monkeypatch.setattr(lanes, "model", captured)
    proposer, both = lanes.guessing(method, sampling)
    for role in ("target", "draft"):
        both.prepare(role, 16, behind=0, advance=lambda done, total: None)
    rounds = rounds_of(proposer, both, sampling=sampling)
    assert rounds > 2
    assert copies == [1] * (rounds + 1)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_a_draft_made_on_the_cpu_goes_to_the_card_without_waiting(lanes, copies, sampling):
    made = draft_model(width=64, sampling=sampling, prompt_length=len(PROMPT))
    both = sessions(lanes.model(1), tiny_llama(1, noise=0.05))
    rounds = rounds_of(made, both, sampling=sampling)
    assert copies == [1] * (rounds + 1)
