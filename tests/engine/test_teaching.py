"""A head is taught by the engine with the real models: tiny ones, for seconds."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from types import MethodType
from typing import Any

import pytest
import torch

from app import files
from app.engine.torch_bench import TorchBench
from app.library.catalogue import Catalogue, load_catalogue
from app.library.head_folder import check_head
from app.library.own_catalogue import offer_head
from app.library.training_folder import look_at
from app.models import loading
from app.models.language_model import LanguageModel
from app.run.events import Progress, RunEnded
from app.run.preparation import Prepare
from app.run.problems import Cancelled, Problem
from app.run.settings import RunSettings
from app.run.teaching import CurvePoint, Taught, Teach
from app.selftest.runs import PAIR
from app.selftest.tiny_models import write_tiny_pair
from app.training import course, training

# torch says so of every norm that is computed in bf16 with weights in fp32, as lessons do.
pytestmark = pytest.mark.filterwarnings("ignore:Mismatch dtype between input and weight")

SECONDS = 2.0


def read() -> Catalogue:
    return load_catalogue([files.user_catalogue()])


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Teach:
    """A training of some seconds, of a tiny pair that is on offer."""
    monkeypatch.setenv("FORETOKEN_HOME", str(tmp_path / "home"))
    write_tiny_pair()
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n---\n".join(f"Count to {number}." for number in range(40)))
    return Teach(
        target=PAIR,
        out=str(tmp_path / "out"),
        minutes=SECONDS / 60,
        prompts=str(prompts),
        precision="fp32",
    )


class Heard:
    """What is told; the teaching is stopped as soon as a stage that begins so has been."""

    def __init__(self, stop_in: str | None = None) -> None:
        self.points: list[CurvePoint] = []
        self.stages: list[str] = []
        self._stop_in = stop_in

    def has(self, stage: str) -> bool:
        """Whether a stage that begins so has been told."""
        return any(one.startswith(stage) for one in self.stages)

    def report(self, progress: Progress) -> None:
        self.stages.append(progress.stage)

    def pause(self) -> None:
        if self._stop_in is not None and self.has(self._stop_in):
            raise Cancelled


def teach(bench: TorchBench, wanted: Teach, heard: Heard) -> Taught:
    return bench.teach(wanted, report=heard.report, point=heard.points.append, pause=heard.pause)


def test_a_training_is_stopped_gone_on_with_and_its_head_is_used(wanted: Teach) -> None:
    bench = TorchBench(read)
    quiet = {"report": lambda progress: None, "pause": lambda: None}
    bench.prepare(Prepare(PAIR), **quiet)
    assert not look_at(read(), wanted).begun

    first = Heard(stop_in="writing texts")
    with pytest.raises(Cancelled):
        teach(bench, wanted, first)
    with pytest.raises(Problem):
        bench.count_tokens("nothing is loaded")
    found = look_at(read(), wanted)
    assert found.begun
    assert found.different == ()
    assert found.head is None

    second = Heard()
    taught = teach(bench, wanted, second)
    assert not second.has("writing the held-out texts")
    assert list(taught.curve) == second.points
    found = look_at(read(), wanted)
    assert found.different == ()
    assert found.head == Path(taught.head)
    assert found.trained == check_head(Path(taught.head)).description.trained

    third = Heard()
    again = teach(bench, wanted, third)
    assert third.points == second.points
    assert not third.has("writing")
    assert not third.has("teaching")
    assert again == taught
    other = look_at(read(), Teach(PAIR, wanted.out, 1.0, draft_vocabulary=100))
    assert [words.split(" ")[0] for words in other.different] == ["prompts", "draft"]

    pair = offer_head(files.user_catalogue(), read(), wanted.target, Path(taught.head))
    prepared = bench.prepare(Prepare(pair), **quiet)
    assert prepared.head is not None
    events: list[object] = []
    settings = RunSettings(pair, "Count to 3.", method="ngram-else-head", max_new_tokens=6)
    bench.run("run", settings, emit=events.append, costing=False, **quiet)
    assert events[-1] == RunEnded("run", "finished", peak_bytes=events[-1].peak_bytes)


def test_a_target_that_is_not_there_is_told(wanted: Teach) -> None:
    with pytest.raises(Problem, match="no pair, no model and no folder"):
        teach(TorchBench(read), Teach("missing", wanted.out, 1.0), Heard())


class Exhausts:
    """Stands in for a function: exhausts memory at its `at`th call, and is itself before that."""

    def __init__(self, function: Callable[..., Any], at: int) -> None:
        self.function, self.at, self.calls = function, at, 0

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., Any]:
        return MethodType(self, instance)  # a function of its own would keep the instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.calls == self.at:
            held = torch.zeros(8)  # what the failing frame keeps alive
            raise RuntimeError(f"DefaultCPUAllocator: can't allocate memory: {held.numel()}")
        return self.function(*args, **kwargs)


STAGES = {
    "the target's weights": (loading, "read_model", 1),
    "writing": (LanguageModel, "forward_side_by_side", 9),
    "the first head": (training, "begin_head", 1),
    "a judgement": (course, "acceptance", 1),
    "a lesson": (course.Course, "_learn", 2),
}


@pytest.mark.parametrize("stage", STAGES)
def test_exhausted_memory_ends_a_training_frees_what_it_took_and_the_same_command_goes_on(
    wanted: Teach, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    place, name, at = STAGES[stage]
    made: list[weakref.ref[LanguageModel]] = []
    init = LanguageModel.__init__

    def noted(self: LanguageModel, *args: Any, **kwargs: Any) -> None:
        made.append(weakref.ref(self))
        init(self, *args, **kwargs)

    bench = TorchBench(read)
    with monkeypatch.context() as patch:
        patch.setattr(LanguageModel, "__init__", noted)
        planted = Exhausts(getattr(place, name), at)
        patch.setattr(place, name, planted)
        with pytest.raises(Problem, match="memory") as problem:
            teach(bench, wanted, Heard())
    assert planted.calls == at
    assert problem.value.remedy
    if stage != "the target's weights":
        assert "up to the last minute is kept" in problem.value.message
        assert "the same command goes on" in problem.value.remedy
    gc.collect()
    assert [one() for one in made if one() is not None] == []
    again = Heard()
    assert teach(bench, wanted, again).head
    if stage == "a lesson":
        assert not again.has("writing the held-out texts")
