"""The client with a true engine process: what is sent, what arrives, what is kept."""

from __future__ import annotations

import threading
import time

import msgspec
import pytest
from engine_watch import PATIENCE, Listening
from fake_bench import FakeBench, audited, settings_of

from app import files
from app.engine.client import EngineClient
from app.engine.protocol import (
    CountTokens,
    EngineEnded,
    JobCancelled,
    JobProblem,
    Quit,
    Run,
    Stop,
    TokenCount,
)
from app.engine.surroundings import LOG_BYTES, log_file
from app.run.auditing import Audit, Audited
from app.run.events import PromptRead, RoundCommitted, RunEnded, RunEvent
from app.run.preparation import EngineReady, Prepare, Prepared, Release, Released
from app.run.record import RunRecord
from app.run.settings import Sampling


def test_a_run_arrives_as_it_was_told_and_the_record_is_that_of_its_events(
    engine: Listening,
) -> None:
    settings = settings_of(rounds=50)
    engine.client.send(Run("a", settings))
    assert engine.client.alive
    assert engine.client.busy
    heard = engine.until(RunEnded)
    told: list[RunEvent] = []
    FakeBench().run(
        "a", settings, emit=told.append, report=lambda progress: None, pause=lambda: None
    )
    assert [event for event in heard if isinstance(event, RunEvent)] == told
    record = RunRecord.begin(told[0])  # type: ignore[arg-type]
    for event in told:
        record.apply(event)
    assert engine.client.record == record
    assert not engine.client.busy
    assert engine.client.alive


def test_a_release_crosses_the_pipe_and_its_answer_ends_the_job(engine: Listening) -> None:
    engine.client.send(Release())
    assert engine.client.busy
    assert engine.until(Released)[-1] == Released(("Fake",), 4)
    assert not engine.client.busy


def test_an_audit_crosses_the_pipe_and_back(engine: Listening) -> None:
    wanted = Audit(settings_of(), runs=7)
    engine.client.send(wanted)
    assert engine.client.busy
    assert engine.until(Audited)[-1] == audited(wanted)
    assert not engine.client.busy


def test_a_run_is_stopped_and_the_next_one_is_not(engine: Listening) -> None:
    engine.client.send(Run("a", settings_of(rounds=100_000, step=0.005)))
    engine.until(RoundCommitted, more=3)
    engine.client.send(Stop())
    engine.until(RunEnded)
    assert engine.client.record is not None
    assert engine.client.record.outcome == "cancelled"
    engine.client.send(Stop())
    engine.client.send(Run("b", settings_of()))
    engine.until(RunEnded)
    assert engine.client.record.outcome == "finished"


def test_loading_is_stopped_between_its_stages(engine: Listening) -> None:
    engine.client.send(Prepare("staged"))
    engine.client.send(Stop())
    assert isinstance(engine.until(JobCancelled)[-1], JobCancelled)
    assert not engine.client.busy


def test_a_question_is_answered_while_a_run_goes_on(engine: Listening) -> None:
    engine.client.send(Run("a", settings_of(rounds=100_000, step=0.005)))
    engine.until(PromptRead)
    engine.client.send(CountTokens(1, "one two"))
    engine.client.send(CountTokens(2, ""))
    heard = engine.until(JobProblem)
    assert TokenCount(1, 2) in heard
    assert JobProblem("No prompt.", "Write one.", question=2) in heard
    assert engine.client.busy
    engine.client.send(Stop())
    engine.until(RunEnded)
    assert not engine.client.busy


def test_what_cannot_be_sent_is_a_problem_and_leaves_no_job_open(engine: Listening) -> None:
    # A text field can hold half a character; a seed can be longer than the pipe's numbers.
    half = msgspec.structs.replace(settings_of(), prompt="a\ud83db")
    long = msgspec.structs.replace(settings_of(), sampling=Sampling(seed=2**70))
    for command, word in (
        (Run("a", half), "'\\ud83d'"),
        (Run("b", long), "too large"),
        (CountTokens(7, half.prompt), "'\\ud83d'"),
    ):
        engine.client.send(command)
        problem = engine.until(JobProblem)[-1]
        assert isinstance(problem, JobProblem)
        assert word in problem.message
        assert problem.question == (7 if isinstance(command, CountTokens) else None)
        assert not engine.client.busy
    engine.client.send(Run("c", settings_of()))
    engine.until(RunEnded)
    assert not engine.client.busy


def test_a_window_that_does_not_look_holds_no_run_up(engine: Listening) -> None:
    arrived = 0
    done = threading.Event()

    def count() -> None:
        nonlocal arrived
        arrived += 1
        if arrived > 20_000:
            done.set()

    engine.client.on_arrival = count
    engine.client.send(Run("a", settings_of(rounds=20_000)))
    assert done.wait(PATIENCE), "the run waited for somebody to look"
    time.sleep(2)
    engine.until(RunEnded)
    assert engine.client.record is not None
    (lane,) = engine.client.record.lanes
    assert len(lane.repetitions[0].rounds) == 20_000


def test_a_sender_is_not_held_up_by_an_engine_that_does_not_read(engine: Listening) -> None:
    engine.client.send(Prepare("stuck"))
    for number in range(200):
        engine.client.send(CountTokens(number, "long " * 20_000))
    engine.client.kill()
    engine.until(EngineEnded)
    assert not engine.client.busy


def test_a_fault_is_told_and_the_engine_lives(engine: Listening) -> None:
    engine.client.send(Run("a", settings_of(rounds=5, fault_at=2)))
    ended = engine.until(RunEnded)[-1]
    assert isinstance(ended, RunEnded)
    assert ended.outcome == "failed"
    log = files.log_folder() / "engine.log"
    assert str(log) in ended.remedy
    assert "what nobody foresaw: ∞" in log.read_text(encoding="utf-8")
    engine.client.send(Prepare("broken"))
    assert engine.until(JobProblem)
    engine.client.send(Prepare("here"))
    prepared = engine.until(Prepared)[-1]
    assert isinstance(prepared, Prepared)
    assert prepared.notes == ()
    assert not [message for message in engine.heard if isinstance(message, EngineEnded)]


def test_the_chatter_of_libraries_goes_to_the_log_alone(
    engine: Listening, capfd: pytest.CaptureFixture[str]
) -> None:
    engine.client.send(Prepare("chatty"))
    engine.until(Prepared)
    assert capfd.readouterr() == ("", "")
    log = (files.log_folder() / "engine.log").read_text(encoding="utf-8")
    for line in ("python chatter ∞", "chatter of a library", "complaint of a library"):
        assert line in log


def test_the_engine_has_nothing_of_the_window(engine: Listening) -> None:
    engine.client.send(Prepare("modules"))
    prepared = engine.until(Prepared)[-1]
    assert isinstance(prepared, Prepared)
    assert not {"PySide6", "shiboken6", "torch"} & set(prepared.notes)


def test_an_engine_that_cannot_load_says_why_and_ends(
    engine: Listening, client: EngineClient
) -> None:
    client._factory = "fake_bench:no_bench"
    client.send(Run("a", settings_of()))
    heard = engine.until(EngineEnded)
    (problem,) = [found for found in heard if isinstance(found, JobProblem)]
    assert "ImportError: DLL load failed" in problem.message
    assert "code 3" in heard[-1].reason
    assert not client.busy


def test_quit_by_request_is_expected(engine: Listening) -> None:
    engine.client.start()
    engine.client.send(Quit())
    assert engine.until(EngineEnded)[-1] == EngineEnded("The engine was closed, as asked.", True)
    assert not engine.client.alive


def test_a_long_log_makes_room_when_an_engine_starts(engine: Listening) -> None:
    log = log_file()
    log.parent.mkdir(parents=True)
    log.write_text("old\n" * (LOG_BYTES // 4 + 1), encoding="utf-8")
    engine.client.start()
    engine.until(EngineReady)
    assert log.with_name("engine.log.1").stat().st_size > LOG_BYTES
    assert log.stat().st_size < 1_000


def test_an_engine_without_a_place_for_its_log_works(engine: Listening) -> None:
    files.log_folder().parent.mkdir(parents=True)
    files.log_folder().write_text("a file where a folder should be", encoding="utf-8")
    engine.client.send(Prepare("chatty"))
    assert isinstance(engine.until(Prepared)[-1], Prepared)
