"""Weights that are not on their model's device: their share, what allows them, what is said."""

import gc
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from app.library.preflight import check
from app.models import loading, offload
from app.models.loaded_head import LoadedHead
from app.models.loading import load, load_weights
from app.run.problems import Problem
from app.run.settings import RunSettings
from app.studies.conditions import Conditions
from tiny_kinds import TOKENIZER, write_kind

CPU, CARD = torch.device("cpu"), torch.device("cuda", 1)
HALF_ON_DISK = {
    "model.embed_tokens": "cpu",
    "model.layers.0": "cpu",
    "model.layers.1": "disk",
    "model.norm": "cpu",
    "model.rotary_emb": "cpu",
    "lm_head": "cpu",
}


@pytest.fixture
def folder(tmp_path):
    return check(write_kind(tmp_path / "tiny", "llama"))


@pytest.fixture
def half(monkeypatch, tmp_path):
    """Whatever is loaded has its second layer on the disk; `cpu` is the device here."""
    where = {"device_map": HALF_ON_DISK, "offload_folder": str(tmp_path / "offloaded")}
    monkeypatch.setattr(loading, "placement", lambda *_, **allowed: where)


def second_layer(model) -> float:
    """The second layer's share of all weights, from their shapes."""
    sizes = {name: weight.numel() for name, weight in model.inner.named_parameters()}
    layer = sum(size for name, size in sizes.items() if name.startswith("model.layers.1."))
    return layer / sum(sizes.values())


def test_the_share_is_that_of_the_weights_that_lie_elsewhere(folder, half):
    loaded = load(folder, name="tiny", precision="fp32", device=CPU, allow_offload=True)
    share = second_layer(loaded.model)
    assert 0.1 < share < 0.5
    assert loaded.model.offloaded == pytest.approx(share)
    assert loaded.facts.offloaded == pytest.approx(share)
    assert loaded.model.device == CPU
    assert loaded.rewinding.holds
    assert loaded.rows.holds
    told = f"{100 * share:.0f} % of the weights are offloaded"
    assert any(told in note and "not those of this card" in note for note in loaded.notes)
    (flag,) = Conditions(lambda: None, 1, models=(loaded.model,)).flags()
    assert flag.kind == "offloaded"
    assert flag.detail == f"{100 * share:.0f} % of the weights of tiny"


def test_an_offloaded_model_answers_as_one_that_is_whole(folder, half, monkeypatch):
    ids = torch.tensor([TOKENIZER("one two")["input_ids"]])
    parted = load_weights(folder, name="tiny", precision="fp32", device=CPU, allow_offload=True)
    monkeypatch.undo()
    whole = load_weights(folder, name="tiny", precision="fp32", device=CPU)
    assert whole.offloaded == 0
    with torch.inference_mode():
        answers = [model.inner(ids).logits for model in (parted, whole)]
    torch.testing.assert_close(*answers)


def test_weights_elsewhere_are_refused_where_no_one_allowed_them(folder, half):
    # C12: a parameter on `meta` behind a load.
    with pytest.raises(Problem, match="% of the weights did not come to the device"):
        load(folder, name="tiny", precision="fp32", device=CPU)


def test_everything_goes_to_the_device_unless_a_card_may_be_relieved(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 4000))
    monkeypatch.setattr(offload.psutil, "virtual_memory", lambda: SimpleNamespace(available=10**6))
    for device, allowed in ((CARD, False), (CPU, True), (torch.device("mps"), True)):
        found = offload.placement(device, tmp_path, allow_offload=allowed)
        assert found == {"device_map": {"": device}}
    found = offload.placement(CARD, tmp_path, allow_offload=True)
    assert found["max_memory"] == {1: 850, "cpu": 850_000}
    assert found["device_map"] == "sequential"
    assert found["offload_folder"] == str(tmp_path)


@pytest.fixture
def written(monkeypatch, tmp_path):
    """The folder that offloaded weights come below; whatever is loaded writes a file of its own."""
    monkeypatch.setenv("FORETOKEN_HOME", str(tmp_path / "home"))
    read_model = loading.read_model

    def read(folder, **given):
        Path(given["offload_folder"]).mkdir(parents=True)
        Path(given["offload_folder"], "weights.dat").write_bytes(b"1")
        return read_model(folder, **given)

    def half_on_disk(device, place, **allowed):
        return {"device_map": HALF_ON_DISK, "offload_folder": str(place)}

    monkeypatch.setattr(loading, "placement", half_on_disk)
    monkeypatch.setattr(loading, "read_model", read)
    return tmp_path / "home" / "cache" / "offloaded"


def test_each_load_has_its_own_room_on_the_disk_as_long_as_its_model_lives(folder, written):
    wish = {"name": "tiny", "precision": "fp32", "device": CPU, "allow_offload": True}
    one = load_weights(folder, **wish)
    (first,) = written.iterdir()
    other = load_weights(folder, **wish)
    assert len(list(written.iterdir())) == 2
    del one
    gc.collect()
    (second,) = written.iterdir()
    assert second != first
    assert (second / "weights.dat").is_file()
    del other
    gc.collect()
    assert not list(written.iterdir())


def test_a_load_that_fails_leaves_nothing_on_the_disk(folder, written):
    with pytest.raises(Problem, match="did not come to the device"):
        load_weights(folder, name="tiny", precision="fp32", device=CPU)
    assert not list(written.iterdir())


def test_what_a_killed_program_left_on_the_disk_is_deleted_and_nothing_of_the_living(written):
    program = (
        "import os\nfrom app.models.offload import room_on_disk\n"
        "with room_on_disk() as place:\n    place.mkdir(parents=True)\n    os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", program], check=False, cwd=os.getcwd())
    (dead,) = written.iterdir()
    elsewhere = written / dead.name.replace(dead.name.split("-")[0], "another0")
    elsewhere.mkdir()
    with offload.room_on_disk() as living:
        living.mkdir()
        offload.clear_left_behind()
        assert set(written.iterdir()) == {living, elsewhere}


def run_out(*args, **kwargs):
    raise torch.OutOfMemoryError("CUDA out of memory")


def test_a_card_without_room_names_the_choice_that_would_help(folder, monkeypatch):
    monkeypatch.setattr(loading, "placement", lambda *_, **allowed: {"device_map": {"": "cpu"}})
    monkeypatch.setattr(loading, "read_model", run_out)
    for allowed, named in ((False, True), (True, False)):
        with pytest.raises(Problem, match="exhausted: tiny in bf16 does not fit") as caught:
            load_weights(folder, name="tiny", precision="bf16", device=CARD, allow_offload=allowed)
        assert ("--allow-offload" in caught.value.remedy) == named
    with pytest.raises(Problem) as caught:
        load_weights(folder, name="tiny", precision="bf16", device=CPU)
    assert "--allow-offload" not in caught.value.remedy


def test_quantised_weights_that_would_have_to_be_offloaded_are_a_problem(folder, monkeypatch):
    pytest.importorskip("bitsandbytes")
    parts = {**HALF_ON_DISK, "model.layers.1": "cpu", "lm_head": "meta"}
    monkeypatch.setattr(loading, "placement", lambda *_, **allowed: {"device_map": parts})
    with pytest.raises(Problem, match="quantised weights cannot be offloaded"):
        load_weights(folder, name="tiny", precision="nf4", device=CPU, allow_offload=True)


def test_a_head_beside_an_offloaded_target_is_refused(folder, half):
    target = load_weights(folder, name="tiny", precision="fp32", device=CPU, allow_offload=True)
    with pytest.raises(Problem, match="all of its target"):
        LoadedHead(None, target)


def test_offloading_is_asked_for_and_never_a_default():
    assert not RunSettings("p", "").allow_offload
