"""Which precision a machine opens a model in, and what it says when it cannot."""

from types import SimpleNamespace

import pytest
import torch

from app.models import precision
from app.models.preparing import _Loader
from app.models.warm import WarmModels, Wish
from app.run.problems import Problem

CARD = torch.device("cuda")


def chosen(device):
    return precision.choose_precision(SimpleNamespace(parameters=1000), device)[0]


def test_a_card_takes_nf4():
    assert chosen(CARD) == "nf4"


@pytest.mark.parametrize("error", [ImportError, OSError, RuntimeError])
def test_without_bitsandbytes_a_card_takes_bf16_and_the_reason_is_told(monkeypatch, error):
    # C01: it is missing, its library is, or it raises for whatever reason of its own.
    def broken(name, *rest):
        raise error("libcudart.so.13: cannot open shared object file\nand a wall of text")

    monkeypatch.setattr(precision.importlib, "import_module", broken)
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
    loaded, why = loader.load(Wish("m", None, None, CARD), ("nf4", "the default"))
    assert (loaded, tried) == ("loaded", ["nf4", "bf16"])
    assert "no kernel image" in why
    loader = _Loader(WarmModels(), lambda progress: None, lambda: None)
    with pytest.raises(Problem, match="no kernel image"):
        loader.load(Wish("m", None, "nf4", CARD), ("nf4", ""))


def test_the_note_says_what_the_weights_were():
    assert "re-quantised from Q4_1" in precision.precision_note("nf4", "Q4_1")
    assert "quantised from" not in precision.precision_note("fp32", None)
