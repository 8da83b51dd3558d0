"""Weights that a folder holds quantised, as its config.json says: what they are and need.

The names are those of transformers' `quantization_config`, and the packages those that its readers
ask for. Only methods are let through that are known to take no code from a file; one library takes
the names in its configuration for paths of programs, and those are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from app.run.problems import Problem


class Quantised(msgspec.Struct, frozen=True):
    """How a folder's own weights are quantised."""

    method: str
    """As config.json names it."""
    held: str | None
    """What their precision is called once they are loaded; None: they are widened to another."""
    words: str
    """What they are, for reports."""
    bits: int | None = None
    """Bits of a weight, where config.json says so."""


class _Method(msgspec.Struct, frozen=True):
    """A method: its name for people, the packages that read it, and whether it is widened."""

    title: str
    packages: tuple[tuple[str, str], ...] = ()
    """Modules and the packages that hold them."""
    widened: bool = False


_BITSANDBYTES = "bitsandbytes"
_METHODS = {
    _BITSANDBYTES: _Method("bitsandbytes", (("bitsandbytes", "bitsandbytes"),)),
    "gptq": _Method("GPTQ", (("optimum", "optimum"), ("gptqmodel", "gptqmodel"))),
    "awq": _Method("AWQ", (("gptqmodel", "gptqmodel"),)),
    "compressed-tensors": _Method(
        "compressed-tensors", (("compressed_tensors", "compressed-tensors"),)
    ),
    "aqlm": _Method("AQLM", (("aqlm", "aqlm"),)),
    "hqq": _Method("HQQ", (("hqq", "hqq"),)),
    "quanto": _Method("Quanto", (("optimum.quanto", "optimum-quanto"),)),
    "torchao": _Method("torchao", (("torchao", "torchao"),)),
    "vptq": _Method("VPTQ", (("vptq", "vptq"),)),
    # Computed as they are, these would ask a hub for compiled code.
    "fp8": _Method("FP8", widened=True),
    "mxfp8": _Method("MXFP8", widened=True),
    "mxfp4": _Method("MXFP4", widened=True),
}


def read_quantisation(folder: Path, declared: dict[str, Any]) -> Quantised:
    """What a `quantization_config` says. Raises Problem for what cannot be loaded here."""
    method = _method(declared)
    _refuse_programs(folder, method, declared)
    known = _METHODS.get(method)
    if known is None:
        raise Problem(
            f"The weights in {folder} are quantised by {method!r}, which cannot be loaded here.",
            f"Choose the model's own repository, a GGUF file of it, or one of: {_known()}.",
        )
    missing = [package for module, package in known.packages if not _there(module)]
    if missing:
        raise Problem(
            f"The weights in {folder} are quantised by {known.title}, which needs "
            f"{' and '.join(missing)}; not installed here.",
            f"Install it into Foretoken's environment (`pip install {' '.join(missing)}`), or "
            "choose the model's own repository.",
        )
    if method == _BITSANDBYTES:
        held = _by_bitsandbytes(declared)
        return Quantised(method, held, "as its folder holds it")
    if known.widened:
        return Quantised(method, None, f"{known.title} widened on loading")
    said = declared.get("bits")
    bits = said if isinstance(said, int) and said in range(1, 33) else None
    digits = f"-{bits}bit" if bits else ""
    return Quantised(method, f"{method}{digits}", f"{known.title}, as its folder holds it", bits)


def _method(declared: dict[str, Any]) -> str:
    """The method as transformers makes it out: two older switches of bitsandbytes come first."""
    if declared.get("load_in_4bit") or declared.get("load_in_8bit"):
        return _BITSANDBYTES
    named = declared.get("quant_method")
    return named if isinstance(named, str) else "an unnamed method"


def _by_bitsandbytes(declared: dict[str, Any]) -> str:
    """The precision that such weights are in."""
    if not declared.get("load_in_4bit"):
        return "llm-int8"
    return "nf4" if declared.get("bnb_4bit_quant_type") == "nf4" else "fp4"


def _refuse_programs(folder: Path, method: str, declared: dict[str, Any]) -> None:
    """Raises Problem for a configuration that names a program's file.

    compressed-tensors takes a name of the form path:value for a file to run; only the patterns of
    its layers, which begin with re:, may hold a colon.
    """
    colons = method == "compressed-tensors"
    for text in _texts(declared):
        path = ".py" in text or (colons and ":" in text and not text.startswith("re:"))
        if path:
            raise Problem(
                f"{folder / 'config.json'} names a program in its quantization_config ({text!r}); "
                "nothing in a model's folder is ever run.",
                "Choose another source for this model.",
            )


def _texts(value: object) -> Iterator[str]:
    """Every string in a value of JSON, names left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _there(module: str) -> bool:
    """Whether a package is installed; found without importing it."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a part of a package that is not there
        return False


def _known() -> str:
    return ", ".join(method.title for method in _METHODS.values())
