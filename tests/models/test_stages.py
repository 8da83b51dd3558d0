"""How far a load has come is told, and at every step it can be stopped."""

import gc
from dataclasses import dataclass, field

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import PreTrainedModel

from app.library.preflight import check
from app.models.hugging_face import set_tqdm_hook
from app.models.loading import load
from app.models.stages import Stages
from app.run.problems import Cancelled, release_frames
from tiny_kinds import write_kind

CPU = torch.device("cpu")


@dataclass
class Watched:
    """Stages that are told here, and stopped before a step of a stage."""

    stop_in: str = ""
    after: int = 0
    told: list = field(default_factory=list)
    steps: int = 0

    @property
    def stages(self) -> Stages:
        return Stages(self.told.append, self.pause)

    def pause(self) -> None:
        self.steps += 1
        inside = bool(self.told) and self.told[-1].stage.startswith(self.stop_in)
        if self.stop_in and inside:
            if self.after == 0:
                raise Cancelled
            self.after -= 1


@pytest.fixture
def folder(tmp_path):
    return check(write_kind(tmp_path, "llama"))


@pytest.fixture(autouse=True)
def every_step_is_told(monkeypatch):
    monkeypatch.setattr("app.models.stages._EVERY_S", 0.0)


def loaded(folder, watched, precision="fp32"):
    return load(folder, name="tiny", precision=precision, device=CPU, stages=watched.stages)


def models_alive():
    gc.collect()
    return [one for one in gc.get_objects() if issubclass(type(one), PreTrainedModel)]


def test_every_tensor_and_every_layer_is_counted(folder):
    watched = Watched()
    loaded(folder, watched)
    tensors = sum(len(file) for file in weights_of(folder))
    reading = [one for one in watched.told if one.unit == "tensors"]
    assert [one.done for one in reading] == list(range(tensors))
    assert {one.total for one in reading} == {tensors}
    packing = [one for one in watched.told if one.unit == "layers"]
    done = [one.done for one in packing]
    # Two layers of seven matrices each, and the output layer; three and two are fused.
    assert {one.total for one in packing} == {15}
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] == 15
    stages = list(dict.fromkeys(one.stage for one in watched.told))
    assert [stage.partition(" ")[0] for stage in stages] == [
        "reading",
        "packing",
        "proving",
        "proving",
    ]


def weights_of(folder):
    from safetensors import safe_open

    for path in folder.weight_files:
        with safe_open(path, "pt") as file:
            yield list(file.keys())


@pytest.mark.parametrize(
    ("stage", "after"), [("reading", 0), ("reading", 9), ("packing", 5), ("proving", 0)]
)
@pytest.mark.parametrize("kind", ["llama", "mixtral"])
def test_a_stop_ends_it_there_and_nothing_stays_in_memory(stage, after, kind, tmp_path):
    folder = check(write_kind(tmp_path, kind))
    before, watched = len(models_alive()), Watched(stage, after)
    with pytest.raises(Cancelled) as caught:
        loaded(folder, watched)
    assert watched.told[-1].stage.startswith(stage)
    steps = watched.steps
    # The exception is still held, as a careless caller would.
    release_frames(caught.value)
    assert len(models_alive()) == before
    assert watched.steps == steps


def test_a_weight_quantised_as_it_is_read_is_a_step_too(folder):
    pytest.importorskip("bitsandbytes")
    watched = Watched("reading", 9)
    with pytest.raises(Cancelled):
        loaded(folder, watched, "nf4")


def test_no_one_is_told_of_bars_that_are_drawn_later(folder):
    def mine(factory, given, named):
        return factory(*given, **named)

    before = set_tqdm_hook(mine)
    try:
        loaded(folder, Watched())
        with pytest.raises(Cancelled):
            loaded(folder, Watched("reading"))
        assert set_tqdm_hook(mine) is mine
    finally:
        set_tqdm_hook(before)


class Products(TorchDispatchMode):
    """Counts products of matrices since anyone asked for a stop, and the most there ever were."""

    def __init__(self):
        super().__init__()
        self.now = self.most = self.all = 0

    def asked(self):
        self.now = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        names = ("mm", "linear", "attention", "matmul", "conv")
        if any(part in operator.name() for part in names):
            self.now += 1
            self.all += 1
            self.most = max(self.most, self.now)
        return operator(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt2", "mixtral"])
def test_no_pass_of_a_load_runs_on_for_more_than_a_layer_without_asking(kind, tmp_path):
    # Counted, as a time depends on the machine: a layer is a few products of matrices.
    products = Products()
    stages = Stages(lambda told: None, products.asked)
    with products:
        load(check(write_kind(tmp_path, kind)), name="tiny", precision="fp32", device=CPU,
             stages=stages)  # fmt: skip
    assert products.all > 100
    # Attention and two layers of a lean pass; a mixture's experts are one layer.
    assert products.most <= (12 if kind == "mixtral" else 4)


@pytest.mark.parametrize("kind", ["llama", "mixtral", "mamba"])
@pytest.mark.parametrize("after", [1, 5, 40])
def test_a_stop_ends_a_proof_within_a_pass(kind, after, tmp_path):
    # A proof that may fail in any way yet tells a stop from a failure.
    watched = Watched("proving", after)
    with pytest.raises(Cancelled):
        loaded(check(write_kind(tmp_path, kind)), watched)
    assert watched.told[-1].stage.startswith("proving")


def test_after_a_load_no_layer_asks_any_more(folder):
    watched = Watched()
    found = loaded(folder, watched)
    steps = watched.steps
    found.model.open(8).read([1, 2, 3], rows=1)
    assert watched.steps == steps
