"""Runs whose passes are recorded: before a lane is timed, once for all lanes, and never within."""

import msgspec
import pytest
import talking
import torch

from app.decoding import drivers
from app.library.catalogue import load_catalogue
from app.models.fixed import choice
from app.models.fixed.passes import Passes
from app.models.fixed.room import Room
from app.run.identities import violations
from app.run.preparation import preparation
from app.run.problems import Cancelled
from app.run.record import RunRecord
from app.run.settings import RunSettings, Sampling
from app.selftest.tiny_models import write_tiny_pair
from app.studies import head_steps
from app.studies.conversation import Conversation
from app.studies.passes import time_passes
from app.studies.workbench import Workbench
from tapes import Tapes


@pytest.fixture(scope="module")
def taped():
    """A workbench on a CPU that takes itself for a card, and what its card has recorded."""
    with pytest.MonkeyPatch.context() as patch:
        tapes = Tapes()
        patch.setattr(choice, "recorder_for", lambda device: tapes)
        yield Workbench(load_catalogue([write_tiny_pair()])), tapes


def ran(bench, settings, *, pause=lambda: None, report=lambda _: None, **more):
    events = []
    settings = msgspec.structs.replace(settings, ignore_end_of_text=True)
    bench.run("r", settings, emit=events.append, report=report, pause=pause, **more)
    record = RunRecord.begin(events[0])
    for event in events:
        record.apply(event)
    assert record.outcome == "finished", record.message
    for lane in record.lanes:
        for one in lane.repetitions:
            assert violations(one, settings.max_new_tokens) == []
    return record


def texts(record):
    return [[one.token_ids for one in lane.repetitions] for lane in record.lanes]


@pytest.mark.parametrize("method", ["ngram", "draft-model", "cascade", "early-exit", "head-tree"])
@pytest.mark.parametrize("order", ["alternated", "interleaved"])
def test_recorded_runs_write_what_eager_runs_write(taped, tiny, method, order):
    bench, tapes = taped
    settings = tiny(method=method, max_new_tokens=24, repetitions=2, order=order)
    eager = ran(bench, msgspec.structs.replace(settings, passes="eager"), costing=False)
    assert eager.target.passes == "eager"
    before, within = tapes.replayed, []
    told = ran(
        bench,
        settings,
        costing=False,
        report=lambda progress: within.append((progress.stage, tapes.recorded)),
    )
    assert told.target.passes == "captured graphs"
    assert texts(told) == texts(eager)
    assert tapes.replayed > before + 20
    at_start = dict(within)["warming up"]
    assert tapes.recorded == at_start  # nothing was recorded behind it
    assert any(stage == "capturing passes" for stage, _ in within)


@pytest.fixture
def passes_recorded(monkeypatch):
    """The passes that were recorded, in order: the model, the shape, and the room by a number."""
    seen, made, record = [], [], Room.record

    def watched(room, model, shape, start):
        made.extend([room] if room not in made else [])
        seen.append((model, shape, made.index(room)))
        return record(room, model, shape, start)

    monkeypatch.setattr(Room, "record", watched)
    return seen


@pytest.mark.parametrize(("method", "models"), [("ngram", 1), ("draft-model", 2)])
def test_lanes_are_recorded_once_where_costs_are_measured_first(
    taped, tiny, passes_recorded, monkeypatch, tmp_path, method, models
):
    bench, tapes = taped
    monkeypatch.setattr("app.studies.costing.cache_folder", lambda: tmp_path)
    settings = tiny(method=method, max_new_tokens=24, draft_length=4)
    ran(bench, settings, costing=False)  # so that the models are proved
    passes_recorded.clear()
    made = len(tapes.made)
    best = msgspec.structs.replace(settings, draft_length_policy="best")
    ran(bench, best, costing=False)
    assert list(tmp_path.iterdir())  # measured, and kept
    assert len(tapes.made) == made + models  # a room for each: the measurement's own
    shapes = [shape for _, shape, _ in passes_recorded]
    # Behind 256 tokens nine widths, and a single row also at the end; then the lane's five.
    measured = [(width, 320) for width in (1, 2, 3, 4, 5, 6, 7, 8, 12)] + [(1, 256)]
    lanes = [(width, 256) for width in range(2, 6)] + ([(1, 256), (2, 256)] * (models - 1))
    assert sorted((one.width, one.keys) for one in shapes) == sorted(measured + lanes)


def test_a_run_that_samples_draws_the_same(taped, tiny):
    bench, _ = taped
    sampling = Sampling(temperature=0.9, top_p=0.95, seed=4)
    settings = tiny(method="draft-model", max_new_tokens=24, sampling=sampling)
    eager = ran(bench, msgspec.structs.replace(settings, passes="eager"), costing=False)
    assert texts(ran(bench, settings, costing=False)) == texts(eager)


def test_nothing_is_held_once_a_run_has_ended(taped, tiny):
    bench, _ = taped
    ran(bench, tiny(method="draft-model", max_new_tokens=8), costing=False)
    for kept in bench._warm.models:
        assert kept.model.passes.rooms._free == []


def test_lanes_that_take_turns_have_a_room_each_and_others_share_one(taped, tiny):
    bench, tapes = taped
    settings = tiny(max_new_tokens=8, repetitions=2)
    ran(bench, settings, costing=False)  # so that the model is proved
    made = []
    for order in ("alternated", "interleaved"):
        before = len(tapes.made)
        ran(bench, msgspec.structs.replace(settings, order=order), costing=False)
        made.append(len(tapes.made) - before)
    assert made == [1, 2]


@pytest.mark.parametrize("method", ["draft-model", "early-exit", "head"])
def test_a_conversation_goes_on_in_recorded_sessions(method):
    turns = ("Count: 1 2 3", "And on?", "And then?")
    settings = RunSettings("toy", "", method=method, max_new_tokens=12, repetitions=2)
    tapes, loaded = Tapes(), talking.pair()
    for model in loaded.models:
        model.passes = Passes("graphs", recorder=tapes)
    on = talking.bench(loaded)
    recorded = talking.talked(turns, settings, conversation=Conversation(turns), on=on)
    eager = talking.talked(turns, settings, conversation=Conversation(turns))
    assert tapes.replayed > 3 * 4 * 4
    for one, other in zip(recorded, eager, strict=True):
        assert texts(one) == texts(other)
        for lane in ("speculative", "baseline"):
            reused = [[r.prompt_reused for r in run.repetitions(lane)] for run in (one, other)]
            assert reused[0] == reused[1]


def test_a_stop_while_passes_are_recorded_ends_the_run_before_it_starts(taped, tiny):
    bench, _ = taped
    settings = tiny(max_new_tokens=8)
    bench.loaded(preparation(settings), report=lambda _: None, pause=lambda: None)
    events = []

    def stop(progress) -> None:
        if progress.stage == "capturing passes":
            raise Cancelled

    with pytest.raises(Cancelled):
        bench.run("r", settings, emit=events.append, report=stop, pause=lambda: None)
    assert events == []


def test_what_lacks_memory_when_it_is_loaded_is_tried_again_in_the_next_run(tiny, monkeypatch):
    def exhausted(*given, **told):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(choice, "recorder_for", lambda device: Tapes())
    bench, settings = Workbench(load_catalogue([write_tiny_pair()])), tiny(max_new_tokens=8)
    with monkeypatch.context() as patch:
        patch.setattr("app.models.fixed.room.fixed_pass", exhausted)
        for _ in range(2):  # tried, and again in vain
            record = ran(bench, settings, costing=False)
            assert record.target.passes == "eager: no memory for its graphs"
    model = bench._pair.target.model
    assert ran(bench, settings, costing=False).target.passes == "captured graphs"
    assert bench._pair.target.model is model
    assert bench.loaded(preparation(settings), report=print, pause=print) is bench._pair


def test_passes_are_timed_as_runs_compute_them(taped, tiny):
    bench, tapes = taped
    settings = tiny(max_new_tokens=8)
    pair = bench.loaded(preparation(settings), report=lambda _: None, pause=lambda: None)
    model = pair.target.model
    before = tapes.replayed
    timed = time_passes(model, [1, 3], context=32, pause=lambda: None)
    assert tapes.replayed - before >= 2 * timed.repeats
    costs = [
        ran(bench, msgspec.structs.replace(settings, passes=passes)).costs
        for passes in ("auto", "eager")
    ]
    assert [one.key.passes for one in costs] == ["captured graphs", ""]
    assert costs[0].key != costs[1].key


def watched(monkeypatch, name, asked):
    """What whole drafts were asked for, as this answer of the drivers has them, and None where none
    was made.
    """
    made = []
    answer = getattr(drivers, name)

    def watching(session, wanted):
        found = answer(session, wanted)
        made.append(None if found is None else getattr(wanted, asked))
        return found

    monkeypatch.setattr(drivers, name, watching)
    return made


@pytest.fixture
def chains(monkeypatch):
    """The lengths of the chains of guesses that sessions made, and None where they made none."""
    return watched(monkeypatch, "_chain", "count")


@pytest.fixture
def trees(monkeypatch):
    """The levels of the trees of guesses that sessions grew, and None where they grew none."""
    return watched(monkeypatch, "_tree", "levels")


def run_both_ways(bench, tapes, settings, made):
    """Runs eagerly, which asks for no whole draft, and by graphs that were all recorded at warm-up:
    both write the same.
    """
    eager = ran(bench, msgspec.structs.replace(settings, passes="eager"), costing=False)
    assert made == []
    within = []
    found = ran(
        bench,
        settings,
        costing=False,
        report=lambda progress: within.append((progress.stage, tapes.recorded)),
    )
    assert found.target.passes == "captured graphs"
    assert texts(found) == texts(eager)
    assert tapes.recorded == dict(within)["warming up"]


@pytest.mark.parametrize("penalty", [1.0, 1.2])
@pytest.mark.parametrize(
    "method", ["draft-model", "early-exit", "head", "tli", "slem", "ngram-else-head"]
)
def test_guesses_of_a_run_are_made_as_whole_chains(taped, tiny, chains, method, penalty):
    bench, tapes = taped
    sampling = Sampling(temperature=0.9, top_k=20, repetition_penalty=penalty, seed=4)
    settings = tiny(method=method, max_new_tokens=40, draft_length=3, sampling=sampling)
    run_both_ways(bench, tapes, settings, chains)
    length = 2 if method == "ngram-else-head" else 3  # its head has a length of its own
    assert chains.count(length) > 3
    assert set(chains) <= {length, None}


@pytest.mark.parametrize("policy", ["fixed", "heuristic"])
def test_trees_of_a_run_are_grown_as_a_whole(taped, tiny, trees, policy):
    bench, tapes = taped
    sampling = Sampling(temperature=0.9, top_k=20, seed=4)
    settings = tiny(method="head-tree", max_new_tokens=40, draft_length=3, sampling=sampling)
    settings = msgspec.structs.replace(settings, draft_length_policy=policy)
    run_both_ways(bench, tapes, settings, trees)
    assert sum(levels is not None for levels in trees) > 3
    if policy == "fixed":  # fewer levels may be left at the end of a text
        assert set(trees) <= {3, None}
    else:
        assert None not in trees
        assert len(set(trees)) > 1


@pytest.mark.parametrize("policy", ["heuristic", "best"])
def test_chains_of_every_length_that_a_policy_may_choose_are_there(taped, tiny, chains, policy):
    bench, _ = taped
    settings = tiny(method="draft-model", max_new_tokens=40, draft_length=4)
    settings = msgspec.structs.replace(settings, draft_length_policy=policy)
    eager = ran(bench, msgspec.structs.replace(settings, passes="eager"), costing=False)
    assert texts(ran(bench, settings, costing=False)) == texts(eager)
    assert len(set(chains)) > 1 or policy == "best"  # which may find that guesses do not pay
    assert None not in chains


@pytest.mark.parametrize("method", ["draft-model", "early-exit", "head", "head-tree"])
def test_a_guess_or_a_level_costs_its_share_of_a_whole_draft(taped, tiny, monkeypatch, method):
    bench, _ = taped
    asked = []

    def told(session, text, wanted, **_):
        asked.append(wanted.length)
        return 0.125

    monkeypatch.setattr(head_steps, "time_whole", told)
    settings = tiny(method=method, max_new_tokens=8, draft_length=3)
    assert ran(bench, settings).costs.draft_step == 0.125
    assert asked == [3]
    eager = ran(bench, msgspec.structs.replace(settings, passes="eager")).costs
    assert asked == [3]
    assert eager.draft_step != 0.125


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(presence_penalty=0.4)])
@pytest.mark.parametrize("method", ["draft-model", "early-exit", "head", "head-tree"])
def test_whole_drafts_are_timed_as_runs_make_them(taped, tiny, method, sampling):
    bench, tapes = taped
    settings = tiny(method=method, max_new_tokens=8, draft_length=3, sampling=sampling)
    before = tapes.replayed
    costs = ran(bench, settings).costs
    assert costs.draft_step > 0
    assert tapes.replayed - before >= 10
