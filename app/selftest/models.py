"""The torch side: devices, model classes, and five rounds of each method with tiny models."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch

from app import files
from app.library.catalogue import load_catalogue
from app.models.hugging_face import transformers
from app.models.machine import choose_device, device_name
from app.models.precision import why_not
from app.run.events import RunEvent
from app.run.methods import METHODS
from app.run.problems import Problem
from app.run.record import RunRecord
from app.run.settings import RunSettings
from app.selftest.result import Result, tried
from app.selftest.runs import tiny_run, tiny_verdict
from app.selftest.surroundings import CLASSES
from app.selftest.tiny_models import write_tiny_pair
from app.studies.workbench import Workbench


def checks(folder: Path) -> Iterator[Result]:
    """The checks, each as it is done; they write below the home folder of the self-test."""
    yield tried("devices", _devices)
    yield tried("model classes", _classes)
    written = tried("tiny models", lambda: f"written to {write_tiny_pair().parent}")
    yield written
    if written.failed:
        return
    bench = Workbench(load_catalogue([files.user_catalogue()]))
    for method in METHODS:
        yield tried(f"method {method}", partial(_run, bench, tiny_run(method)))
    yield tried("4-bit weights", partial(_run_in_4_bits, bench))


def _devices() -> str:
    """What models can run on here."""
    found = ["CPU"]
    found += [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    found += ["Apple GPU"] if torch.backends.mps.is_available() else []
    cuda = f"CUDA {torch.version.cuda}" if torch.version.cuda else "no CUDA"
    chosen = device_name(choose_device(None))
    cores = os.cpu_count()
    return f"{', '.join(found)}; taken: {chosen}; torch has {cuda}; {cores} processor cores"


def _classes() -> str:
    """Whether classes can be had that transformers imports only when asked."""
    for name in CLASSES:
        getattr(transformers, name)
    return ", ".join(name.removesuffix("ForCausalLM") for name in CLASSES)


def _run(bench: Workbench, settings: RunSettings) -> str:
    """Runs here, and looks at what has come of it."""
    return tiny_verdict(record_here(bench, settings))


def record_here(bench: Workbench, settings: RunSettings) -> RunRecord:
    """Runs here, through the workbench that engine and command line use."""
    events: list[RunEvent] = []
    bench.run(
        "selftest",
        settings,
        emit=events.append,
        report=lambda progress: None,
        pause=lambda: None,
        costing=False,
    )
    return RunRecord.of(events)


def _run_in_4_bits(bench: Workbench) -> str:
    """A draft model in 4 bits, which bitsandbytes' own compiled library computes."""
    hindrance: Problem | None = why_not("nf4", choose_device(None))
    if hindrance is not None:
        raise hindrance
    return _run(bench, tiny_run("draft-model", draft_precision="nf4"))
