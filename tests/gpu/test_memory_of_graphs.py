"""Graphs, rooms and models give a card's memory back, whatever ends them; none of it is left when
an engine is killed; memory that is exhausted is told, and the next run works.
"""

import time

import pytest
import torch
from cards import CARD, ON_A_CARD, QUIET, REAL, Ballast, held_bytes, plant, run_on, tiny_settings

from app.engine.client import EngineClient
from app.engine.protocol import EngineEnded, Run
from app.library.catalogue import load_catalogue
from app.models.fixed.memory import PlacedLayer
from app.models.fixed.passes import Passes
from app.models.fixed.reader import FixedReader
from app.run.events import LaneStarted, RoundCommitted, RunEnded
from app.run.preparation import preparation
from app.run.problems import Problem
from app.selftest.tiny_models import write_tiny_pair
from app.studies.workbench import Workbench

pytestmark = ON_A_CARD
GRAPHS = "captured graphs"
SLACK = 1 << 16
"""Bytes that may differ, less than the keys and values of one session."""
PATIENCE = 240.0
"""Seconds after which an engine has failed."""


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setenv("FORETOKEN_HOME", str(tmp_path))
    made = Workbench(load_catalogue([write_tiny_pair()]))
    yield made
    made.release()


@pytest.fixture
def ballast():
    made = Ballast()
    yield made
    made.release()


def settings(**changes):
    return tiny_settings(**{"method": "draft-model", "max_new_tokens": 48, **changes})


@pytest.mark.parametrize("method", ["draft-model", "head", "ngram"])
def test_memory_returns_after_runs_and_after_release(bench, method):
    said = {"method": method, "method_options": {"shortest": 1} if method == "ngram" else {}}
    run_on(bench, settings(**said))
    bench.release()
    empty = held_bytes()  # libraries have taken their own by now
    bench.loaded(preparation(settings(**said)), **QUIET)
    loaded = held_bytes()
    for length in (4, 7, 4):
        record = run_on(bench, settings(draft_length=length, **said))
        assert (record.outcome, record.target.passes) == ("finished", GRAPHS)
        assert held_bytes()[0] <= loaded[0] + SLACK
    bench.release()
    allocated, reserved = held_bytes()
    assert allocated <= empty[0] + SLACK
    assert reserved <= empty[1] + (4 << 20)  # torch takes memory in pieces of 2 MiB


def test_memory_returns_after_a_run_that_was_stopped(bench):
    run_on(bench, settings())
    loaded = held_bytes()[0]
    asked = 0

    def stop():
        nonlocal asked
        asked += 1
        if asked == 30:
            raise KeyboardInterrupt

    quiet = {**QUIET, "pause": stop}
    with pytest.raises(KeyboardInterrupt):
        bench.run("run", settings(), emit=lambda event: None, costing=False, **quiet)
    assert held_bytes()[0] <= loaded + SLACK
    assert run_on(bench, settings()).target.passes == GRAPHS


def test_memory_that_lacks_at_load_is_told_and_the_next_run_works(bench, ballast):
    ballast.take()
    with pytest.raises(Problem, match="memory") as problem:
        run_on(bench, settings())
    assert problem.value.remedy
    ballast.release()
    _works(bench, "auto")


@pytest.mark.parametrize("passes", ["auto", "eager"])
def test_memory_that_lacks_for_the_prompt_is_told_and_the_next_run_works(bench, ballast, passes):
    run_on(bench, settings(passes=passes))

    def watch(event):
        if isinstance(event, LaneStarted):
            ballast.take()

    record = run_on(bench, settings(passes=passes), watch)
    _is_told(record)
    assert not any(made.rounds for made in record.repetitions("speculative"))
    ballast.release()
    _works(bench, passes)


@pytest.mark.parametrize("passes", ["auto", "eager"])
def test_memory_that_lacks_in_round_seven_is_told_and_the_next_run_works(bench, ballast, passes):
    said = {"passes": passes, "draft_length": 3, "max_new_tokens": 120}
    run_on(bench, settings(**said))
    rounds = 0

    def watch(event):
        nonlocal rounds
        if isinstance(event, RoundCommitted):
            rounds += 1
            if rounds == 6:
                ballast.take()

    record = run_on(bench, settings(**said), watch)
    _is_told(record)
    assert [len(made.rounds) for made in record.repetitions("speculative")] == [6]
    ballast.release()
    _works(bench, passes)


def test_memory_that_lacks_for_the_proof_of_graphs_leaves_the_load_eager(
    bench, ballast, monkeypatch
):
    with monkeypatch.context() as patch:
        plant(patch, PlacedLayer, "lazy_initialization", ballast.take)
        plant(patch, Passes, "fall_back", ballast.release)
        record = run_on(bench, settings())
    assert record.outcome == "finished", record.message
    assert record.target.passes == "eager: no memory for its graphs"
    _works(bench, "auto")


MOMENTS = {"before a pass is tried": (FixedReader, "_record", 2)}
if REAL:
    MOMENTS["while a pass is recorded"] = (torch.cuda.CUDAGraph, "capture_begin", 1)


@pytest.mark.parametrize("moment", MOMENTS)
def test_memory_that_lacks_for_a_graph_makes_the_run_eager_and_the_next_one_not(
    bench, ballast, monkeypatch, moment
):
    """The run has memory again once the graphs have been given up."""
    owner, name, at = MOMENTS[moment]
    bench.loaded(preparation(settings()), **QUIET)
    with monkeypatch.context() as patch:
        take = ballast.take if name != "capture_begin" else _forbid
        plant(patch, owner, name, take, at=at)
        plant(patch, Passes, "fall_back", ballast.release)
        record = run_on(bench, settings())
    assert record.outcome == "finished", record.message
    told = [record.target.passes, record.draft.passes]
    assert "eager: no memory for its graphs" in told
    assert set(told) <= {"eager: no memory for its graphs", GRAPHS}
    if REAL:
        assert torch.cuda.current_stream(CARD) == torch.cuda.default_stream(CARD)
    _works(bench, "auto")


def _forbid():
    """The pool of a graph begins empty, so that nothing has to be taken: torch may ask for no more.

    Nothing else can be done while the card is about to record.
    """
    torch.cuda.set_per_process_memory_fraction(0.0, CARD)


def _is_told(record):
    assert record.outcome == "failed"
    assert "exhausted" in record.message
    assert "shorter context" in record.remedy


def _works(bench, passes):
    record = run_on(bench, settings(passes=passes))
    assert record.outcome == "finished", record.message
    assert record.target.passes == (GRAPHS if passes == "auto" else "eager")


def test_an_engine_killed_between_rounds_of_graphs_leaves_no_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("FORETOKEN_HOME", str(tmp_path))
    write_tiny_pair()
    torch.zeros(1, device=CARD)  # a context of this process is there before and after
    held_bytes()
    before = torch.cuda.mem_get_info(CARD)[0]
    client = EngineClient()
    try:
        client.send(Run("a", settings(max_new_tokens=400)))
        _until(client, RoundCommitted)
        if REAL:
            assert client.record.target.passes == GRAPHS
        during = torch.cuda.mem_get_info(CARD)[0]
        assert during < before - (64 << 20)  # its context alone takes more
        client.kill()
        _until(client, EngineEnded)
        end = time.monotonic() + 30
        while torch.cuda.mem_get_info(CARD)[0] < before - (16 << 20) and time.monotonic() < end:
            time.sleep(0.2)
        assert torch.cuda.mem_get_info(CARD)[0] >= before - (16 << 20)
        client.send(Run("b", settings()))
        _until(client, RunEnded)
        assert (client.record.run, client.record.outcome) == ("b", "finished")
    finally:
        client.close()


def _until(client, kind):
    """Drains until a message of this kind has come."""
    end, seen = time.monotonic() + PATIENCE, []
    while not any(isinstance(message, kind) for message in seen):
        assert time.monotonic() < end, f"no {kind.__name__}; came: {seen[-3:]}"
        seen += client.drain()
        assert kind is EngineEnded or not any(isinstance(one, EngineEnded) for one in seen), seen
        time.sleep(0.01)
