"""Which precision a machine opens a model in, and what it says when it cannot."""

import os
import subprocess
import sys
from types import SimpleNamespace

import msgspec
import pytest
import torch

from app.files import shipped_catalogue
from app.library.catalogue import load_catalogue
from app.models import bits_and_bytes, loading, precision
from app.models.draft_wish import beside
from app.models.preparing import _Loader, load_pair
from app.models.warm import WarmModels, Wish
from app.run.preparation import Prepare
from app.run.problems import Damaged, DoesNotFit, Problem
from app.studies import workbench

CARD, CPU = torch.device("cuda"), torch.device("cpu")


def chosen(device):
    return precision.choose_precision(SimpleNamespace(parameters=1000), device)[0]


@pytest.fixture(autouse=True)
def a_card_that_works(monkeypatch):
    """There is none here: what is tried on it succeeds, but for what a test says."""
    tried = precision.why_not_tried
    monkeypatch.setattr(
        precision,
        "why_not_tried",
        lambda name, device: None if device.type == "cuda" else tried(name, device),
    )


def test_a_card_takes_nf4():
    assert chosen(CARD) == "nf4"


@pytest.mark.parametrize("error", [ImportError, OSError, RuntimeError])
def test_without_bitsandbytes_a_card_takes_bf16_and_the_reason_is_told(monkeypatch, error):
    # C01: it is missing, its library is, or it raises for whatever reason of its own.
    def broken(name, *rest):
        raise error("libcudart.so.13: cannot open shared object file\nand a wall of text")

    monkeypatch.setattr(bits_and_bytes.importlib, "import_module", broken)
    assert chosen(CARD) == "bf16"
    refusal = precision.why_not("nf4", CARD)
    assert "libcudart.so.13" in refusal.message
    assert "wall" not in refusal.message
    assert refusal.remedy
    with pytest.raises(Problem, match="bitsandbytes"):
        precision.loading_arguments("nf4", torch.device("cpu"))


def test_apple_takes_bf16():
    assert chosen(torch.device("mps")) == "bf16"


def test_a_cpu_takes_fp32_if_it_fits(monkeypatch):
    cpu, folder = torch.device("cpu"), SimpleNamespace(parameters=10**9)
    free = SimpleNamespace(available=6 * 10**9)
    monkeypatch.setattr(precision.psutil, "virtual_memory", lambda: free)
    assert precision.choose_precision(folder, cpu)[0] == "fp32"
    free.available = 5 * 10**9
    chosen, why = precision.choose_precision(folder, cpu)
    assert chosen == "bf16"
    assert "would not fit" in why


def test_fp16_on_a_cpu_is_refused():
    # C16.
    assert precision.why_not("fp16", torch.device("cpu")).remedy
    assert precision.why_not("fp16", CARD) is None


def test_an_old_card_computes_in_fp16(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **known: False)
    assert precision.loading_arguments("nf4", CARD)["dtype"] == torch.float16
    assert precision.loading_arguments("nf4", torch.device("cpu"))["dtype"] == torch.bfloat16


def test_nf4_that_fails_to_load_on_a_card_gives_way_to_bf16(monkeypatch):
    tried = []

    def load(folder, *, precision, **others):
        tried.append(precision)
        if precision == "nf4":
            raise Problem("m cannot be loaded in nf4: no kernel image")
        return "loaded"

    monkeypatch.setattr("app.models.preparing.load", load)
    loader = _Loader(WarmModels(), lambda progress: None, lambda: None)
    folder = SimpleNamespace(quantised=None)
    loaded, why = loader.load(Wish("m", folder, None, CARD), ("nf4", "the default"))
    assert (loaded, tried) == ("loaded", ["nf4", "bf16"])
    assert "no kernel image" in why
    loader = _Loader(WarmModels(), lambda progress: None, lambda: None)
    with pytest.raises(Problem, match="no kernel image"):
        loader.load(Wish("m", folder, "nf4", CARD), ("nf4", ""))


def failing(error):
    """A reader of models that only fails, and the types that it was asked to read in."""
    asked = []

    def read_model(folder, **given):
        asked.append(given["dtype"])
        raise error

    return read_model, asked


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), DoesNotFit),
        (RuntimeError("set ignore_mismatched_sizes"), Damaged),
    ],
)
def test_what_has_no_room_or_is_damaged_is_not_read_again_in_bf16(monkeypatch, error, kind):
    read_model, asked = failing(error)
    monkeypatch.setattr(loading, "read_model", read_model)
    monkeypatch.setattr(
        loading, "loading_arguments", lambda precision, *_, **__: {"dtype": precision}
    )
    loader = _Loader(WarmModels(), lambda progress: None, lambda: None)
    wish = Wish("m", SimpleNamespace(quantised=None, folder="m"), None, CARD)
    with pytest.raises(kind) as refusal:
        loader.load(wish, ("nf4", "the default"))
    assert asked == ["nf4"]
    assert "bf16" not in refusal.value.message


def test_what_has_no_room_in_nf4_is_read_in_bf16_where_that_can_be_offloaded(monkeypatch):
    read_model, asked = failing(RuntimeError("Some modules are dispatched on the CPU or the disk"))
    monkeypatch.setattr(loading, "read_model", read_model)
    monkeypatch.setattr(loading, "placement", lambda *_, **__: {"device_map": "sequential"})
    monkeypatch.setattr(
        loading, "loading_arguments", lambda precision, *_, **__: {"dtype": precision}
    )
    loader = _Loader(WarmModels(), lambda progress: None, lambda: None)
    wish = Wish("m", SimpleNamespace(quantised=None, folder="m"), None, CARD, allow_offload=True)
    with pytest.raises(DoesNotFit):
        loader.load(wish, ("nf4", "the default"))
    assert asked == ["nf4", "bf16"]


@pytest.mark.parametrize("name", ["nf4", "fp4", "llm-int8"])
def test_what_bitsandbytes_serves_works_on_this_cpu(name):
    assert precision.why_not(name, CPU) is None
    arguments = precision.loading_arguments(name, CPU)
    quantised = arguments["quantization_config"]
    assert quantised.load_in_8bit == (name == "llm-int8")
    if name != "llm-int8":
        assert quantised.bnb_4bit_quant_type == name
        assert quantised.bnb_4bit_use_double_quant


def test_a_layer_that_fails_in_its_first_pass_is_found_before_a_model_is_loaded(monkeypatch):
    # C02: half a backend shows only in the first multiplication.
    from bitsandbytes import nn

    def missing(self, x):
        raise NotImplementedError("Operator gemm_4bit is not there for the device\nand more")

    monkeypatch.setattr(nn.Linear4bit, "forward", missing)
    bits_and_bytes.why_not_tried.cache_clear()
    refusal = precision.why_not("fp4", CPU)
    bits_and_bytes.why_not_tried.cache_clear()
    assert refusal.message.startswith("bitsandbytes cannot compute fp4 on cpu here")
    assert "gemm_4bit" in refusal.message
    assert "and more" not in refusal.message
    assert "bf16" in refusal.remedy
    assert precision.why_not("llm-int8", CPU) is None


def test_a_full_device_refuses_nothing(monkeypatch):
    def full(precision, device):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(bits_and_bytes, "_apart", full)
    bits_and_bytes.why_not_tried.cache_clear()
    assert precision.why_not("nf4", CPU) is None
    bits_and_bytes.why_not_tried.cache_clear()


def test_a_refused_precision_is_told_before_anything_is_fetched(monkeypatch):
    def fetched(*given, **named):
        pytest.fail("fetched")

    monkeypatch.setattr("app.models.preparing.fetch", fetched)
    catalogue = load_catalogue([shipped_catalogue()])
    entry = next(pair for pair in catalogue.pairs if pair.draft)
    for asked in ({"precision": "fp16"}, {"draft_precision": "fp16"}):
        refused(catalogue, entry, Prepare(entry.name, device="cpu", **asked))
    refused(
        catalogue,
        msgspec.structs.replace(entry, draft_precision="fp16"),
        Prepare(entry.name, device="cpu"),
    )


def refused(catalogue, entry, wanted):
    with pytest.raises(Problem, match="fp16 crawls"):
        load_pair(
            catalogue,
            entry,
            wanted,
            warm=WarmModels(),
            report=lambda told: None,
            pause=lambda: None,
        )


@pytest.mark.parametrize(
    ("target", "device", "taken"),
    [
        ("int8", CPU, "int8"),
        ("int8", CARD, None),
        ("fp16", CARD, "fp16"),
        ("fp16", CPU, None),
        ("nf4", CARD, "nf4"),
        ("gptq-4bit", CARD, None),
    ],
)
def test_a_draft_takes_the_targets_precision_only_where_its_own_device_can(
    monkeypatch, target, device, taken
):
    monkeypatch.setattr(precision, "why_not_packed", lambda held: None)
    wish = Wish("draft", SimpleNamespace(quantised=None), None, device)
    assert beside(wish, target).precision == taken


def test_every_refusal_of_a_device_is_one_sentence_with_a_way_out():
    found = precision.refusals(CPU)
    assert "fp16" in found
    assert "Choose bf16 or fp32." in found["fp16"]
    assert set(found) <= {"fp16", "int8"}
    assert set(precision.refusals(CARD)) == {"int8"}


def test_each_kind_of_device_has_refusals_of_its_own(monkeypatch):
    both = [torch.device("cuda", 0), torch.device("cuda", 1), CPU]
    monkeypatch.setattr(workbench, "devices_here", lambda: both)
    found = workbench.Workbench(None).refusals()
    assert list(found) == ["cuda", "cpu"]
    assert set(found["cuda"]) == {"int8"}
    assert set(found["cpu"]) - {"int8"} == {"fp16"}


def test_every_precision_has_a_meaning():
    from typing import get_args

    from app.run.settings import Precision

    assert set(precision.PRECISIONS) == set(get_args(Precision))


def test_code_from_a_hub_is_not_asked_for(tmp_path):
    # bitsandbytes fetches compiled kernels while it is imported, if it finds the package for it.
    (tmp_path / "kernels.py").write_text("raise SystemExit('kernels was imported')")
    program = "import app.models.precision as p, torch; print(p.refusals(torch.device('cpu')))"
    said = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.getcwd()])},
    )
    assert said.returncode == 0, said.stderr
    assert "fp16" in said.stdout
