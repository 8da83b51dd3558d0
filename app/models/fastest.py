"""The precision that a machine runs a model fastest in, by a short measurement that is kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import msgspec
import torch

from app.files import cache_folder
from app.library.preflight import FolderFacts
from app.models.language_model import LanguageModel
from app.models.loading import load_weights
from app.models.machine import processor_name, release_memory
from app.models.precision import why_not
from app.models.session import Block
from app.run.events import Progress
from app.run.settings import Precision

_ON_CPU: tuple[Precision, ...] = ("fp32", "bf16", "nf4")
_ON_CARD: tuple[Precision, ...] = ("nf4", "bf16", "fp16", "fp32")
_WIDTH = 5
_PASSES = 5
_CONTEXT = 64


class Measurement(msgspec.Struct, frozen=True):
    """Seconds of a pass of 1 row and a pass of 5 rows together, by precision."""

    seconds: dict[Precision, float]

    @property
    def fastest(self) -> Precision:
        """The precision that took least."""
        return min(self.seconds, key=lambda precision: self.seconds[precision])

    @property
    def note(self) -> str:
        """The measurement in words."""
        shown = ", ".join(f"{name} {1000 * s:.0f} ms" for name, s in self.seconds.items())
        return f"fastest here ({shown} for a pass of 1 and a pass of {_WIDTH} rows)"


def choose_precision(
    folder: FolderFacts,
    *,
    name: str,
    device: torch.device,
    report: Callable[[Progress], None],
    pause: Callable[[], None],
) -> tuple[Precision, str]:
    """The precision to open a model in, and why: measured on a CPU, nf4 on a card that takes it."""
    if device.type == "cuda":
        chosen = next(precision for precision in _ON_CARD if why_not(precision, device) is None)
        return chosen, "the default on a graphics card"
    if device.type != "cpu":
        return "bf16", f"the default on {device.type}"
    kept = _read()
    key = _key(folder)
    if key not in kept:
        kept[key] = _measure(folder, name=name, device=device, report=report, pause=pause)
        _write(kept)
    return kept[key].fastest, kept[key].note


def _measure(
    folder: FolderFacts,
    *,
    name: str,
    device: torch.device,
    report: Callable[[Progress], None],
    pause: Callable[[], None],
) -> Measurement:
    able = [precision for precision in _ON_CPU if why_not(precision, device) is None]
    seconds: dict[Precision, float] = {}
    for done, precision in enumerate(able):
        pause()
        report(Progress(f"measuring {name} in {precision}", done, len(able), "precisions"))
        model = load_weights(folder, name=name, precision=precision, device=device)
        seconds[precision] = _seconds(model)
        del model
        release_memory()
    return Measurement(seconds)


def _seconds(model: LanguageModel) -> float:
    """Median seconds of a pass of one row and a pass of several, after a warm-up."""
    text = [(7 * place) % model.rows for place in range(_CONTEXT)]
    session = model.open(_CONTEXT + _WIDTH)
    session.read(text[:-1], rows=1)
    taken = []
    for _ in range(_PASSES + 1):
        start = time.perf_counter()
        session.read(text, rows=1)
        session.read(text, Block([1] * (_WIDTH - 1), device=model.device), rows=_WIDTH)
        taken.append(time.perf_counter() - start)
    return median(taken[1:])


def _key(folder: FolderFacts) -> str:
    threads = torch.get_num_threads()
    return f"{folder.folder} on {processor_name()}, {threads} threads, torch {torch.__version__}"


def _file() -> Path:
    return cache_folder() / "precisions.json"


def _read() -> dict[str, Measurement]:
    """What was measured before; a file that cannot be read is measured again."""
    try:
        return msgspec.json.decode(_file().read_bytes(), type=dict[str, Measurement])
    except (OSError, msgspec.MsgspecError):
        return {}


def _write(kept: dict[str, Measurement]) -> None:
    cache_folder().mkdir(parents=True, exist_ok=True)
    new = _file().with_suffix(f".{os.getpid()}")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(kept)))
    new.replace(_file())
