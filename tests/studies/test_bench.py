"""A bench runs every prompt in every way, and can be stopped and gone on with."""

import msgspec
import pytest
import talking
from recorded import lane_events, record_of, started

from app.cli.bench_asked import bench_ways
from app.library.prompts_set import Prompt
from app.models.machine import out_of_memory
from app.run.events import RunEnded
from app.run.problems import Cancelled, Problem
from app.run.settings import Message, RunSettings
from app.studies.bench import BrokenOff, plan, resumed, run_bench, ways_of

PROMPTS = [
    Prompt("p1", "chat", ("Say one two three, one two three.",)),
    Prompt("p2", "code", ("Write: x = 1", "And again.")),
]
SETTINGS = RunSettings(pair="toy", prompt="", max_new_tokens=6)


def test_every_prompt_in_every_way():
    planned = plan(PROMPTS, [("ngram", 2), ("ngram", 4), ("nothing", 0)], SETTINGS)
    assert [(one.prompt.id, one.settings.method, one.settings.draft_length) for one in planned] == [
        (prompt, *way)
        for prompt in ("p1", "p2")
        for way in (("ngram", 2), ("ngram", 4), ("nothing", 0))
    ]
    assert planned[3].settings.prompt == "Write: x = 1"
    assert len({one.name for one in planned}) == 6


def test_options_are_of_the_settings_own_method():
    own = msgspec.structs.replace(SETTINGS, method="early-exit", method_options={"exit_layer": 1})
    found = ways_of(own, [("early-exit", 2), ("ngram", 2)])
    assert [one.method_options for one in found] == [{"exit_layer": 1}, {}]


def test_ways_are_read_from_words(catalogue):
    pair = catalogue.pair("embedded")
    assert bench_ways(pair, None, None) == [("ngram-else-head", 8)]
    assert bench_ways(pair, "ngram,nothing", "2, 4") == [
        ("ngram", 2),
        ("ngram", 4),
        ("nothing", 2),
        ("nothing", 4),
    ]
    for wrong in ("two", "-1", "65", ""):
        with pytest.raises(Problem):
            bench_ways(pair, None, wrong or ",")


def kept_none(prompt, settings):
    return None


def test_the_next_turn_follows_the_reply_that_was_kept():
    reply = record_of(*lane_events("speculative", [[2, 3]]), prompt="Write: x = 1")
    text = reply.repetitions("speculative")[0].text
    one = plan(PROMPTS[1:], [("ngram", 2)], SETTINGS)[0]

    def kept(prompt, settings):
        assert prompt == "p2"
        return reply if settings == one.settings else None

    found = resumed(one, kept)
    assert found.done == (reply,)
    assert found.next.prompt == "And again."
    assert found.next.earlier == (Message("user", "Write: x = 1"), Message("assistant", text))
    assert resumed(one, kept_none) == one
    assert found.with_record(reply).next is None


def test_a_bench_yields_records():
    told, bench = [], talking.bench()
    planned = plan(PROMPTS, [("ngram", 3)], SETTINGS)
    runs = list(run_bench(bench, planned, report=told.append, pause=lambda: None))
    assert [(run.prompt, run.category) for run in runs] == [
        ("p1", "chat"), ("p2", "code"), ("p2", "code"),
    ]  # fmt: skip
    assert all(run.record.repetitions("baseline")[0].rounds for run in runs)
    assert [run.record.settings.turn for run in runs] == [0, 0, 1]
    assert runs[2].record.repetitions("speculative")[0].prompt_reused > 0
    assert [(progress.done, progress.total) for progress in told] == [(0, 3), (1, 3), (2, 3)]


def test_nothing_is_reused_between_prompts_or_ways():
    prompts = [Prompt(name, "c", ("the very same",)) for name in ("a", "b")]
    planned = plan(prompts, [("ngram", 1), ("ngram", 2)], SETTINGS)
    runs = list(run_bench(talking.bench(), planned, report=print, pause=lambda: None))
    lanes = [lane for run in runs for lane in run.record.lanes]
    assert len(runs) == 4
    assert {each.prompt_reused for lane in lanes for each in lane.repetitions} == {0}


def test_a_run_that_fails_breaks_its_prompt_off_and_no_other():
    class Failing:
        def run(self, name, settings, *, emit, **how):
            emit(started(prompt=settings.prompt))
            outcome = "failed" if name.startswith("p1") else "finished"
            for event in lane_events("speculative", [[2]]):
                emit(event)
            emit(RunEnded("r", outcome, "NaN." if outcome == "failed" else ""))

    planned = plan(PROMPTS, [("ngram", 2)], SETTINGS)
    runs = list(run_bench(Failing(), planned, report=lambda _: None, pause=lambda: None))
    assert runs[0] == BrokenOff("p1 with ngram 2", 0, 1, "NaN.")
    assert [run.record.settings.prompt for run in runs[1:]] == ["Write: x = 1", "And again."]


def test_a_run_that_finds_no_memory_before_it_starts_breaks_its_prompt_off_and_no_other():
    class Lacking:
        def run(self, name, settings, *, emit, **how):
            if name.startswith("p1"):
                raise out_of_memory("while passes were measured")
            emit(started(prompt=settings.prompt))
            for event in lane_events("speculative", [[2]]):
                emit(event)
            emit(RunEnded("r", "finished"))

    planned = plan(PROMPTS, [("ngram", 2)], SETTINGS)
    runs = list(run_bench(Lacking(), planned, report=lambda _: None, pause=lambda: None))
    assert "exhausted (while passes were measured)" in runs[0].reason
    assert [run.record.settings.prompt for run in runs[1:]] == ["Write: x = 1", "And again."]


def test_a_stop_ends_a_bench():
    def stop():
        raise Cancelled

    planned = plan(PROMPTS, [("ngram", 3)], SETTINGS)
    with pytest.raises(Cancelled):
        list(run_bench(talking.bench(), planned, report=lambda _: None, pause=stop))


@pytest.mark.embedded
def test_a_conversation_with_the_embedded_model(workbench):
    settings = msgspec.structs.replace(SETTINGS, pair="embedded", precision="bf16")
    planned = plan(PROMPTS[1:], [("ngram", 3)], settings)
    first, second = run_bench(workbench, planned, report=lambda _: None, pause=lambda: None)
    lanes = [lane.repetitions[0] for lane in second.record.lanes]
    assert all(lane.rounds for lane in lanes)
    # The template begins both turns alike, and the second holds the whole first prompt.
    assert min(lane.prompt_reused for lane in lanes) >= len(first.record.prompt_ids) - 4
