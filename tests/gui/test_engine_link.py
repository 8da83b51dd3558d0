"""What the window knows of its engine."""

from __future__ import annotations

import pytest
from scripted_engine import prepared, run_of

from app.engine.protocol import CountTokens, EngineEnded, JobCancelled, JobProblem, Run, Stop
from app.gui.engine_link import EngineLink
from app.gui.engine_words import released_words, state_words
from app.run.events import FirstToken, LaneStarted, Progress, RunEnded
from app.run.preparation import EngineReady, Prepare, Release, Released
from app.run.problems import Problem
from app.run.settings import RunSettings
from app.run.teaching import CurvePoint, Taught, Teach

SETTINGS = RunSettings(pair="embedded", prompt="Hi")
TEACH = Teach("embedded", "/out", 60.0)
POINT = CurvePoint(7, 0.5, (0.5,), 0.5, ())
TAUGHT = Taught("/out/head", POINT, (POINT,), 0.97, 9, 1.5, False)


@pytest.fixture
def link(client) -> EngineLink:
    return EngineLink(client, clock=lambda: 0.0)


def test_a_slow_start_tells_how_long_it_takes(client):
    now = [0.0]
    link = EngineLink(client, clock=lambda: now[0])
    link.start()
    assert state_words(link) == "Engine is starting"
    now[0] = 12.4
    assert state_words(link) == "Engine is starting (12 s)"


def test_another_pair_replaces_the_one_that_is_being_made_ready(link, client):
    link.prepare(Prepare("one"))
    link.prepare(Prepare("two"))
    assert client.sent == [Prepare("one"), Stop(), Prepare("two")]
    client.play(EngineReady("2", "cpu"), JobCancelled())
    link.pull()
    assert link.job == "prepare"
    client.play(prepared("two"))
    link.pull()
    assert link.job == ""
    assert link.pair == "two"


def test_asked_twice_for_the_same_models_it_loads_them_once(link, client):
    # C17: a double click.
    link.prepare(Prepare("one"))
    link.prepare(Prepare("one"))
    assert client.sent == [Prepare("one")]
    link.stop()
    link.prepare(Prepare("one"))
    assert client.sent == [Prepare("one"), Stop(), Stop(), Prepare("one")]


def test_released_models_are_no_longer_those_of_the_engine(link, client):
    link.prepare(Prepare("one"))
    link.release()  # not while they are being made ready
    assert client.sent == [Prepare("one")]
    client.play(EngineReady("2", "cpu"), prepared("one"))
    link.pull()
    assert link.target is not None
    link.release()
    assert state_words(link).startswith("Releasing models")
    client.play(Released(("Tiny",), 540_000_000))
    link.pull()
    assert client.sent[1:] == [Release()]
    assert (link.pair, link.target, link.job) == (None, None, "")
    assert state_words(link) == "Engine ready · cpu"


def test_what_was_released_is_told_with_its_size():
    words = released_words(Released(("Tiny", "Draft"), 540_000_000))
    assert words == (
        "Released: Tiny and Draft, 540 MB of weights. The next run loads what it needs."
    )
    assert released_words(Released()) == "No model was loaded."


def test_the_problem_of_a_pair_that_was_replaced_is_nobodys(link, client):
    link.prepare(Prepare("one"))
    link.prepare(Prepare("two"))
    client.play(JobProblem("The download failed."))
    link.pull()
    assert link.trouble is None
    assert link.job == "prepare"


def test_a_training_takes_the_place_of_a_pair_that_is_made_ready(link, client):
    link.prepare(Prepare("one"))
    link.teach(TEACH)
    assert client.sent == [Prepare("one"), Stop(), TEACH]
    client.play(prepared("one"), POINT)  # it was ready before it heard of the Stop
    link.pull()
    assert link.job == "teach"
    assert link.pair is None
    assert link.curve == [POINT]
    client.play(TAUGHT)
    link.pull()
    assert link.job == ""
    assert link.taught is TAUGHT


def test_during_a_training_nothing_else_is_begun(link, client):
    link.teach(TEACH)
    link.prepare(Prepare("two"))
    link.teach(TEACH)
    link.audit(SETTINGS)
    with pytest.raises(Problem, match="A training goes on"):
        link.run(SETTINGS)
    assert client.sent == [TEACH]


def test_no_training_is_begun_during_a_run(link, client):
    link.run(SETTINGS)
    link.teach(TEACH)
    assert [type(command) for command in client.sent] == [Run]


def test_the_next_training_begins_with_an_empty_curve(link, client):
    link.teach(TEACH)
    client.play(POINT, TAUGHT)
    link.pull()
    link.teach(TEACH)
    assert link.curve == []
    assert link.taught is None
    client.play(JobProblem("Too little memory."))
    link.pull()
    assert link.trouble.job == "teach"


def test_a_question_that_fails_ends_no_job(link, client):
    link.prepare(Prepare("one"))
    client.play(JobProblem("No prompt.", question=3))
    link.pull()
    assert link.job == "prepare"
    assert link.trouble is None


def test_nothing_is_counted_before_there_is_a_tokenizer(link, client):
    link.count("Hi", system="", raw=False)
    assert client.sent == []
    client.ready()
    link.start()
    link.pull()
    number = link.count("Hi", system="", raw=False)
    assert client.sent == [CountTokens(number, "Hi")]


def test_a_run_out_of_range_is_refused(link, client):
    with pytest.raises(Problem):
        link.run(RunSettings(pair="embedded", prompt="Hi", draft_length=65))
    assert client.sent == []


def test_a_pair_is_not_changed_during_a_run(link, client):
    link.run(SETTINGS)
    link.prepare(Prepare("two"))
    assert [type(command) for command in client.sent] == [Run]


def test_an_engine_that_ends_while_a_run_waits_forgets_it(link, client):
    link.prepare(Prepare("one"))
    link.run(SETTINGS)
    assert link.waits
    client.play(EngineEnded("The engine ended with code 3.", expected=False))
    link.pull()
    assert not link.busy
    assert link.phase == "trouble"
    assert "code 3" in link.trouble.message


def test_an_engine_that_was_asked_to_end_is_no_trouble(link, client):
    link.run(SETTINGS)
    client.play(EngineEnded("The engine was closed, as asked.", expected=True))
    link.pull()
    assert link.trouble is None
    assert state_words(link) == "Engine is off"


def test_progress_ends_where_a_lane_begins_and_where_it_writes(link, client):
    events = run_of()
    link.run(SETTINGS)
    for begun in (LaneStarted, FirstToken):
        last = next(place for place, event in enumerate(events) if isinstance(event, begun))
        client.play(events[0], Progress("warming up"), *events[1:last])
        link.pull()
        client.play(Progress("still warming up"), events[last])
        link.pull()
        assert link.progress is None


def test_trouble_is_overtaken_by_the_next_job(link, client):
    link.run(SETTINGS)
    client.play(run_of()[0], RunEnded("r", "failed", "No.", "Yes."))
    link.pull()
    assert link.trouble.remedy == "Yes."
    link.run(SETTINGS)
    assert link.trouble is None
