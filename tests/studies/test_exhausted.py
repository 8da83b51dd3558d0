"""Exhausted memory at any stage: the run says so, nothing of it stays, the next one works."""

import gc
import weakref

import pytest
import torch

from app.decoding import loop
from app.library.catalogue import load_catalogue
from app.models import cache, head_session, language_model, loading, warm
from app.models.exhausted import is_out_of_memory, memory_guard
from app.run.auditing import Audit
from app.run.events import LaneEnded, RunEnded
from app.run.problems import DoesNotFit, Problem
from app.run.settings import Sampling
from app.selftest.tiny_models import write_tiny_pair
from app.studies import run_costs, run_events, warming, workbench
from app.studies.workbench import Workbench, preparation
from tests.studies.conftest import tiny_settings

QUIET = {"report": lambda progress: None, "pause": lambda: None}
TOLD = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
    RuntimeError("MPS backend out of memory (MPS allocated: 1 GB, max allowed: 2 GB)"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 1 bytes."),
    MemoryError(),
    OSError(12, "Cannot allocate memory"),
]


@pytest.mark.parametrize("error", TOLD, ids=lambda error: str(error)[:20])
def test_every_way_of_telling_it_becomes_one_problem_with_a_remedy(error):
    with (
        pytest.raises(Problem, match=r"memory is exhausted \(here\)") as problem,
        memory_guard("here"),
    ):
        raise error
    assert problem.value.remedy


@pytest.mark.parametrize("error", [RuntimeError("mat1 and mat2"), ValueError("out of memory")])
def test_other_faults_are_not_taken_for_it(error):
    assert not is_out_of_memory(error)
    with pytest.raises(type(error)), memory_guard("here"):
        raise error


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setenv("FORETOKEN_HOME", str(tmp_path))
    return Workbench(load_catalogue([write_tiny_pair()]))


def run(bench, **changes):
    events = []
    settings = tiny_settings(**{"method": "draft-model", "max_new_tokens": 12, **changes})
    bench.run("run", settings, emit=events.append, **QUIET)
    return events


class Fails:
    """Stands in for a function: exhausts memory at its `at`th call, and is itself before that."""

    def __init__(self, function, at=1):
        self.function, self.at, self.calls = function, at, 0

    def __get__(self, instance, owner=None):
        return lambda *args, **kwargs: self(instance, *args, **kwargs)

    def __call__(self, *args, **kwargs):
        self.calls += 1
        if self.calls == self.at:
            held = torch.zeros(8)  # what the failing frame keeps alive
            raise RuntimeError(f"DefaultCPUAllocator: can't allocate memory: {held.numel()}")
        return self.function(*args, **kwargs)


LOADING = {
    "the target's weights": (loading, "read_model", 1),
    "the draft's weights": (loading, "read_model", 2),
    "packing": (language_model, "pack", 1),
    "the proofs": (loading, "prove_rewinding", 1),
    "the draft's proofs": (loading, "prove_rows_independent", 2),
    "the head": (warm, "LoadedHead", 1),
}
RUNNING = {
    "warming": (warming, "warm_up", 1),
    "a cache": (cache.FixedLayer, "lazy_initialization", 9),
    "the prompt's pass": (language_model.LanguageModel, "forward", 8),
    "a round": (language_model.LanguageModel, "forward", 17),
    "a decision": (loop, "bring_home", 4),
    "the difference": (run_events, "find_divergence", 1),
}


@pytest.mark.parametrize("stage", LOADING)
def test_while_loading_nothing_stays_and_the_next_try_works(bench, monkeypatch, stage):
    place, name, at = LOADING[stage]
    made = []
    init = language_model.LanguageModel.__init__

    def noted(self, *args, **kwargs):
        made.append(weakref.ref(self))
        init(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(language_model.LanguageModel, "__init__", noted)
        patch.setattr(place, name, Fails(getattr(place, name), at))
        with pytest.raises(Problem, match="exhausted") as problem:
            bench.loaded(preparation(tiny_settings()), **QUIET)
        assert problem.value.remedy
        gc.collect()
        # A model that was whole before stays for the next try.
        whole = [kept.model for kept in bench._warm.models]
        assert all(one() is None or one() in whole for one in made)
    assert run(bench)[-1].outcome == "finished"


@pytest.mark.parametrize("stage", RUNNING)
def test_while_running_the_run_ends_with_what_it_has_and_the_next_one_works(
    bench, monkeypatch, stage
):
    place, name, at = RUNNING[stage]
    bench.loaded(preparation(tiny_settings()), **QUIET)
    caches = []
    opened = language_model.open_cache

    def noted(*args):
        made = opened(*args)
        caches.append(weakref.ref(made))
        return made

    with monkeypatch.context() as patch:
        patch.setattr(language_model, "open_cache", noted)
        planted = Fails(getattr(place, name), at)
        patch.setattr(place, name, planted)
        events = run(bench)
    assert planted.calls >= at
    assert isinstance(events[-1], RunEnded)
    assert events[-1].outcome == "failed"
    assert "exhausted" in events[-1].message
    assert "shorter context" in events[-1].remedy
    gc.collect()
    assert [one() for one in caches if one() is not None] == []
    if stage in ("a round", "a decision"):
        assert any(isinstance(event, LaneEnded) and event.finish == "failed" for event in events)
    assert run(bench)[-1].outcome == "finished"


def test_a_head_that_finds_no_memory_ends_its_lane(bench, monkeypatch):
    with monkeypatch.context() as patch:
        failing = Fails(head_session.HeadSession._feed, 6)
        patch.setattr(head_session.HeadSession, "_feed", failing)
        events = run(bench, method="head")
    assert events[-1].outcome == "failed"
    assert "exhausted" in events[-1].message
    assert run(bench, method="head")[-1].outcome == "finished"


def test_costs_that_a_run_chooses_by_and_that_find_no_memory_are_told_of(bench, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(run_costs, "costs_of", Fails(run_costs.costs_of))
        with pytest.raises(DoesNotFit, match="while passes were measured"):
            run(bench, draft_length_policy="best")
    assert run(bench, draft_length_policy="best")[-1].outcome == "finished"


def test_costs_that_find_no_memory_leave_the_run_finished(bench, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(run_costs, "costs_of", Fails(run_costs.costs_of))
        events = run(bench)
    assert events[-1].outcome == "finished"
    assert run(bench)[-1].outcome == "finished"


def test_an_audit_that_finds_no_memory_is_a_problem(bench, monkeypatch):
    drawn = Sampling(temperature=1.0, top_k=8)
    settings = tiny_settings(max_new_tokens=2, prompt="a", method="draft-model", sampling=drawn)
    with monkeypatch.context() as patch:
        patch.setattr(workbench, "audit_lane", Fails(workbench.audit_lane))
        with pytest.raises(Problem, match="exhausted"):
            bench.audit(Audit(settings, 10), **QUIET)
    assert run(bench)[-1].outcome == "finished"
