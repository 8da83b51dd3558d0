"""Captured graphs write what eager passes write, hold at load, and take less time."""

import pytest
import torch
from cards import CARD, ON_A_CARD, QUIET, REAL, run_on, tiny_settings
from near_ties import fault

from app.library.catalogue import load_catalogue
from app.library.random_shapes import RANDOM_SHAPES
from app.models.fixed.choice import choose_passes
from app.models.fixed.room import Room
from app.models.language_model import LanguageModel
from app.models.proofs import prove_rewinding, prove_rows_independent, prove_trees
from app.models.random_pair import random_pair
from app.models.stages import unseen
from app.run.identities import violations
from app.run.metrics import counts
from app.run.preparation import preparation
from app.selftest.tiny_models import write_tiny_pair
from app.studies.passes import time_passes
from app.studies.workbench import Workbench

pytestmark = ON_A_CARD
PRECISIONS = ["fp32", "bf16", "fp16", "nf4"]
LENGTHS = range(1, 9)
METHODS = {"draft-model": {}, "head": {}, "ngram": {"shortest": 1}}
GRAPHS = "captured graphs"


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORETOKEN_HOME", str(tmp_path_factory.mktemp("home")))
        torch.backends.cuda.matmul.allow_tf32 = False
        yield Workbench(load_catalogue([write_tiny_pair()]))


@pytest.fixture
def replays(monkeypatch):
    """Notes every answer of a room: whether it had the pass."""
    found, answer = [], Room.answer

    def noted(self, model, shape):
        left = answer(self, model, shape)
        found.append(left is not None)
        return left

    monkeypatch.setattr(Room, "answer", noted)
    return found


def written(bench, **said):
    """What a run wrote, and how its target's passes were computed."""
    record = run_on(bench, tiny_settings(**said))
    assert record.outcome == "finished", record.message
    (made,) = record.repetitions("speculative")
    assert violations(made) == []
    return record, made


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_greedy_texts_are_the_eager_ones_but_for_near_ties(bench, precision, method, replays):
    said = {"precision": precision, "method": method, "method_options": METHODS[method]}
    texts, drafted = {}, 0
    for passes in ("auto", "eager"):  # in this order: each change of it is proved anew
        for length in LENGTHS:
            record, made = written(bench, passes=passes, draft_length=length, **said)
            assert record.target.passes == (GRAPHS if passes == "auto" else "eager")
            if method == "draft-model":
                assert record.draft.passes == record.target.passes
            texts[passes, length] = made.token_ids
            drafted += counts(made).drafted
    plain = written(bench, passes="eager", precision=precision, method="nothing")[1].token_ids
    assert drafted > 0
    assert any(replays)
    model, prompt = bench._pair.target.model, list(record.prompt_ids)
    faults = {
        (passes, length): found
        for (passes, length), text in texts.items()
        if (found := fault(model, prompt, plain, text, width=length + 1))
    }
    assert faults == {}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_is_proved_at_load_holds_with_graphs(bench, precision, replays):
    pair = bench.loaded(preparation(tiny_settings(precision=precision)), **QUIET)
    for model in pair.models:
        assert model.passes.said == GRAPHS
        with model.passes.kept():
            model.open(128).prepare(16)  # the sessions of the proofs find what it has recorded
            replays.clear()
            for prove in (prove_rewinding, prove_rows_independent, prove_trees):
                found = prove(model)
                assert found.holds, (model.name, found.note)
                assert any(replays), prove.__name__
                replays.clear()


def test_what_cannot_be_captured_is_told_and_read_eagerly(bench, monkeypatch):
    """A pass that waits for the card is refused before it is recorded, and the card goes on."""
    pair = bench.loaded(preparation(tiny_settings(passes="eager")), **QUIET)
    model = pair.target.model
    stream = torch.cuda.current_stream(CARD) if REAL else None
    answer = LanguageModel.answer

    def waiting(*args, **kwargs):
        logits = answer(*args, **kwargs)
        return logits if bool(logits.isfinite().all()) else logits.nan_to_num()

    with monkeypatch.context() as patch:
        patch.setattr(LanguageModel, "answer", waiting)
        choose_passes(model, "auto")
        assert model.passes.said.startswith("eager: its passes cannot be captured")
    assert stream is None or torch.cuda.current_stream(CARD) == stream
    choose_passes(model, "eager")
    choose_passes(model, "auto")
    assert model.passes.said == GRAPHS


def test_a_replayed_pass_takes_less_time_than_an_eager_one():
    made = random_pair(
        RANDOM_SHAPES["tiny"], None, precision="bf16", device=CARD, passes="eager", stages=unseen()
    )
    model, taken = made.pair.target.model, {}
    for passes in ("eager", "auto"):
        choose_passes(model, passes)
        timings = time_passes(model, [1, 5], context=256, pause=lambda: None)
        taken[passes] = timings.seconds
    assert model.passes.said == GRAPHS
    if REAL:  # some seventy launches against one
        assert taken["auto"][1] < 0.7 * taken["eager"][1]
        assert taken["auto"][5] < 0.7 * taken["eager"][5]
