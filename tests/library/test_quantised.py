"""What folders of quantised weights need, told from their config.json alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.library import quantised
from app.library.catalogue import Catalogue
from app.library.checking import check_named
from app.library.preflight import check
from app.library.quantised import Quantised, read_quantisation
from app.run.problems import Problem

Make = Callable[..., Path]
HERE = Path("folder")


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantised, "find_spec", lambda module: None)


@pytest.fixture
def all_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantised, "find_spec", lambda module: object())


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize(
    ("method", "packages"),
    [
        ("gptq", "optimum and gptqmodel"),
        ("awq", "gptqmodel"),
        ("compressed-tensors", "compressed-tensors"),
        ("bitsandbytes", "bitsandbytes"),
        ("quanto", "optimum-quanto"),
    ],
)
def test_a_package_that_is_missing_is_named(method: str, packages: str) -> None:
    with pytest.raises(Problem) as caught:
        read_quantisation(HERE, {"quant_method": method, "bits": 4})
    assert f"needs {packages}; not installed" in caught.value.message
    assert f"pip install {packages.replace(' and ', ' ')}" in caught.value.remedy


@pytest.mark.usefixtures("nothing_installed")
def test_the_check_of_a_model_says_it(make_folder: Make) -> None:
    folder = make_folder(config={"quantization_config": {"quant_method": "awq", "bits": 4}})
    found = check_named(Catalogue(), str(folder))
    assert not found.usable
    assert "AWQ, which needs gptqmodel" in found.models[0].reason
    assert "pip install gptqmodel" in found.models[0].remedy


@pytest.mark.usefixtures("all_installed")
def test_with_its_package_a_folder_passes(make_folder: Make) -> None:
    folder = make_folder(config={"quantization_config": {"quant_method": "gptq", "bits": 4}})
    found = check(folder).quantised
    assert found == Quantised("gptq", "gptq-4bit", "GPTQ, as its folder holds it", 4)
    assert check_named(Catalogue(), str(folder)).usable


@pytest.mark.usefixtures("all_installed")
@pytest.mark.parametrize(
    ("declared", "held"),
    [
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "llm-int8"),
        ({"load_in_8bit": True}, "llm-int8"),
        ({"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "nf4"),
        ({"load_in_4bit": True, "quant_method": "gptq"}, "fp4"),  # as transformers reads it
        ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, "compressed-tensors"),
        ({"quant_method": "fp8"}, None),
    ],
)
def test_the_precision_is_called_what_it_is(declared: dict[str, Any], held: str | None) -> None:
    assert read_quantisation(HERE, declared).held == held


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize("method", ["fp8", "mxfp4", "mxfp8"])
def test_what_is_widened_needs_no_package(method: str) -> None:
    assert read_quantisation(HERE, {"quant_method": method}).held is None


@pytest.mark.parametrize("method", ["eetq", "a new one", None, 7])
def test_a_method_that_is_not_known_is_refused(method: object) -> None:
    with pytest.raises(Problem, match="cannot be loaded here") as caught:
        read_quantisation(HERE, {"quant_method": method})
    assert "GPTQ" in caught.value.remedy


@pytest.mark.usefixtures("all_installed")
@pytest.mark.parametrize(
    "changes",
    [
        {"format": "./spoilt.py:Compressor"},
        {"format": "/somewhere/spoilt.so:Compressor"},
        {"config_groups": {"one": {"weights": {"observer": "spoilt:Observer"}}}},
        {"sparsity_config": {"format": "a.py:b", "targets": ["re:.*"]}},
    ],
)
def test_a_program_named_in_a_config_is_refused(changes: dict[str, Any], make_folder: Make) -> None:
    # The library behind it would run the file.
    declared = {"quant_method": "compressed-tensors", **changes}
    with pytest.raises(Problem, match="names a program"):
        read_quantisation(HERE, declared)
    with pytest.raises(Problem, match="names a program"):
        check(make_folder(config={"text_config": {"quantization_config": declared}}))


@pytest.mark.usefixtures("all_installed")
def test_patterns_of_layers_and_versions_are_no_programs() -> None:
    groups = {"one": {"targets": ["Linear", "re:.*mlp.*"], "weights": {"num_bits": 8}}}
    declared = {"quant_method": "compressed-tensors", "config_groups": groups, "ignore": ["re:.*"]}
    assert read_quantisation(HERE, declared).method == "compressed-tensors"
    meta = {"quantizer": ["gptqmodel:1.9.0"], "uri": "https://example.org"}
    assert read_quantisation(HERE, {"quant_method": "gptq", "meta": meta}).held == "gptq"
