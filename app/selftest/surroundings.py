"""What is checked without torch and without Qt: versions, and the files that ship."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib import metadata

from app import __version__, files
from app.library.catalogue import load_catalogue
from app.reports.schema import record_schema
from app.run.problems import Problem
from app.selftest.result import Result, tried

PACKAGES = (
    "accelerate",
    "bitsandbytes",
    "gguf",
    "huggingface_hub",
    "msgspec",
    "numpy",
    "pyqtgraph",
    "PySide6-Essentials",
    "safetensors",
    "tokenizers",
    "torch",
    "transformers",
)
"""The libraries whose versions are told, as pip names them."""

CLASSES = (
    "Gemma2ForCausalLM",
    "Gemma3ForCausalLM",
    "Gemma3ForConditionalGeneration",
    "Glm4MoeForCausalLM",
    "Glm4MoeLiteForCausalLM",
    "LlamaForCausalLM",
    "MistralForCausalLM",
    "Phi3ForCausalLM",
    "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",
    "SmolLM3ForCausalLM",
)
"""Model classes that the catalogue's models, and a person's own folders, are likely to ask for."""


def checks() -> Iterator[Result]:
    """The checks, each as it is done."""
    yield tried("program", _program)
    yield tried("libraries", _libraries)
    yield tried("shipped files", _shipped_files)
    yield tried("report layout", _report_layout)


def _program() -> str:
    kind = "frozen" if getattr(sys, "frozen", False) else "from source"
    python = f"Python {platform.python_version()}"
    return f"Foretoken {__version__}, {kind}, {python}, {platform.platform()}"


def _libraries() -> str:
    """The versions; metadata that a frozen program lacks is what fails here."""
    return ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)


def _shipped_files() -> str:
    catalogue = load_catalogue([files.shipped_catalogue()])
    if catalogue.faults or not catalogue.pairs:
        fault = str(catalogue.faults[0]) if catalogue.faults else "it offers no pair."
        raise Problem(f"{files.shipped_catalogue()}: {fault}", "Install Foretoken again.")
    for name in ("icons/foretoken.svg", "window.qss"):
        if not files.resource(name).is_file():
            raise Problem(f"{files.resource(name)} is missing.", "Install Foretoken again.")
    return f"pairs: {len(catalogue.pairs)}, models: {len(catalogue.models)}"


def _report_layout() -> str:
    """Whether the record's classes tell what their fields are: that is read from their source."""
    schema = record_schema()
    fields = [
        (f"{name}.{field}", "description" in told)
        for name, definition in schema["$defs"].items()
        for field, told in definition["properties"].items()
    ]
    untold = [field for field, is_told in fields if not is_told]
    if untold:
        raise Problem(f"Nothing tells what {untold[0]} is.", "Install Foretoken again.")
    return f"{len(fields)} fields, all told of"
