"""Engines that end at the worst moment, parents that do, and clients that are closed."""

from __future__ import annotations

import os
import signal
import threading
import time
from multiprocessing.context import SpawnProcess

import psutil
import pytest
from engine_watch import FAKE, PATIENCE, Listening, Strays, wait_for
from fake_bench import settings_of

from app.engine.process import EngineProcess
from app.engine.protocol import Command, EngineEnded, Message, Run, Stop
from app.run.events import FirstToken, Progress, PromptRead, RoundCommitted, RunEnded
from app.run.preparation import EngineReady, Prepare, Prepared

MOMENTS: dict[str, tuple[Command | None, type[Message]]] = {
    "between runs": (None, EngineReady),
    "load": (Prepare("stuck"), Progress),
    "load for a run": (Run("a", settings_of("staged")), Progress),
    "prefill": (Run("a", settings_of(chunks=100_000, step=0.005)), PromptRead),
    "mid-round": (Run("a", settings_of(rounds=100_000, step=0.005)), RoundCommitted),
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("killer", ["system", "client"])
def test_a_killed_engine_is_told_of_and_the_next_run_works(
    engine: Listening, moment: str, killer: str
) -> None:
    command, sign = MOMENTS[moment]
    engine.client.start()
    if command is not None:
        engine.client.send(command)
    engine.until(sign)
    (child,) = Strays.processes()
    child.kill() if killer == "system" else engine.client.kill()
    ended = engine.until(EngineEnded)[-1]
    assert isinstance(ended, EngineEnded)
    assert ended.expected == (killer == "client")
    if killer == "system" and os.name == "posix":
        assert "killed (signal 9)" in ended.reason
        assert "out of memory" in ended.reason
    assert not engine.client.alive
    assert not engine.client.busy
    _check_partial_record(engine, moment, ended)
    engine.client.send(Run("b", settings_of()))
    engine.until(RunEnded)
    assert engine.client.record is not None
    assert (engine.client.record.run, engine.client.record.outcome) == ("b", "finished")


def _check_partial_record(engine: Listening, moment: str, ended: EngineEnded) -> None:
    """The record holds whatever had arrived, and says why there is no more."""
    record = engine.client.record
    if moment not in ("prefill", "mid-round"):
        assert record is None
        return
    assert record is not None
    assert (record.outcome, record.message) == ("engine ended", ended.reason)
    repetition = record.lanes[0].repetitions[0]
    rounds = [found.round for found in engine.heard if isinstance(found, RoundCommitted)]
    firsts = [found.token for found in engine.heard if isinstance(found, FirstToken)]
    assert repetition.rounds == rounds
    assert repetition.tokens[:1] == firsts
    assert bool(rounds) == (moment == "mid-round")


def test_a_job_sent_at_once_behind_a_kill_goes_to_a_new_engine(engine: Listening) -> None:
    engine.client.send(Run("a", settings_of(rounds=100_000, step=0.005)))
    engine.until(RoundCommitted)
    engine.client.kill()
    engine.client.kill()
    engine.client.send(Run("b", settings_of()))
    before = engine.until(EngineEnded)
    assert not [found for found in before if isinstance(found, EngineReady)]
    assert engine.client.busy, "the end of the old engine is not the end of the new one's job"
    engine.until(RunEnded)
    assert engine.client.record is not None
    assert engine.client.record.run == "b"
    assert not engine.client.busy


def test_an_engine_starts_only_once_the_one_before_it_has_ended(engine: Listening) -> None:
    heard: list[tuple[str, Message]] = []
    first = EngineProcess(FAKE, lambda _, message: heard.append(("first", message)))
    second = EngineProcess(FAKE, lambda _, message: heard.append(("second", message)), after=first)
    wait_for(lambda: bool(heard))
    time.sleep(0.5)  # more than the second would take
    assert len(Strays.processes()) == 1
    first.close(PATIENCE)
    wait_for(lambda: ("second", EngineReady("fake", "CPU")) in heard)
    assert [found[0] for found in heard] == ["first", "first", "second"]
    second.close(PATIENCE)


def test_an_engine_killed_while_it_is_being_started_ends(
    engine: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = SpawnProcess.start

    def start_and_be_killed(process: SpawnProcess) -> None:
        start(process)
        started.wait(PATIENCE)  # the engine's own thread may be here before the client knows of it
        engine.client.kill()

    started = threading.Event()
    monkeypatch.setattr(SpawnProcess, "start", start_and_be_killed)
    engine.client.start()
    started.set()
    engine.until(EngineEnded)


@pytest.mark.parametrize("step", ["Pipe", "Process"])
def test_an_engine_that_cannot_be_started_is_told_of(
    engine: Listening, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        if step == "Pipe":
            patch.setattr("app.engine.process._SPAWN.Pipe", fail)
        else:
            patch.setattr(SpawnProcess, "start", fail)
        engine.client.send(Run("a", settings_of()))
        ended = engine.until(EngineEnded)[-1]
    assert isinstance(ended, EngineEnded)
    assert "Too many open files" in ended.reason
    assert not engine.client.busy
    engine.client.send(Run("b", settings_of()))
    assert isinstance(engine.until(RunEnded)[-1], RunEnded)


def test_a_code_of_its_own_is_told_with_the_log(engine: Listening) -> None:
    engine.client.send(Prepare("gone"))
    ended = engine.until(EngineEnded)[-1]
    assert isinstance(ended, EngineEnded)
    assert "ended with code 7" in ended.reason
    assert "engine.log" in ended.reason
    assert not ended.expected


def test_an_engine_killed_before_it_exists_is_told_of(engine: Listening) -> None:
    engine.client.start()
    engine.client.kill()
    assert engine.until(EngineEnded)


def test_nothing_is_started_to_be_stopped(engine: Listening) -> None:
    engine.client.send(Stop())
    assert not engine.client.alive


def test_starting_twice_starts_one(engine: Listening, child: psutil.Process) -> None:
    engine.client.start()
    engine.client.start()
    assert Strays.processes() == [child]


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_in_the_terminal_is_not_for_the_engine(
    engine: Listening, child: psutil.Process
) -> None:
    child.send_signal(signal.SIGINT)
    engine.client.send(Prepare("here"))
    assert isinstance(engine.until(Prepared)[-1], Prepared)


@pytest.mark.parametrize("wait", [None, 0.0, 0.05, 0.5])
@pytest.mark.parametrize("load", ["stuck", "staged", "here"])
def test_a_client_is_closed_at_any_time(engine: Listening, wait: float | None, load: str) -> None:
    if wait is not None:
        engine.client.send(Run("a", settings_of(load, rounds=100_000, step=0.005)))
        time.sleep(wait)
    engine.client.close()
    assert not engine.client.busy
    assert Strays.threads() == []
    assert Strays.processes() == []
    engine.client.close()
    engine.client.send(Prepare("here"))
    assert not engine.client.alive


def test_closing_during_a_load_that_hears_nothing(engine: Listening) -> None:
    engine.client.send(Prepare("stuck"))
    engine.until(Progress)
    engine.client.close()
    assert Strays.processes() == []


def test_closing_in_mid_run_ends_the_record(engine: Listening) -> None:
    engine.client.send(Run("a", settings_of(rounds=100_000, step=0.005)))
    engine.until(RoundCommitted)
    engine.client.close()
    assert engine.client.record is not None
    assert engine.client.record.outcome == "cancelled"


def test_closing_in_no_time_kills(engine: Listening) -> None:
    engine.client.send(Prepare("stuck"))
    engine.client.close(timeout=0)
    assert Strays.processes() == []
