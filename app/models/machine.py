"""The machine that models run on: which device, how fast, how much memory."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

import psutil
import torch

from app import __version__
from app.run.events import Environment
from app.run.problems import Problem

_PACKAGES = ("torch", "transformers", "tokenizers", "bitsandbytes", "accelerate")


def choose_device(wanted: str | None) -> torch.device:
    """The device asked for, or the best there is. Raises Problem for one that is not there."""
    if wanted is None:
        return torch.device(_best_device())
    try:
        device = torch.device(wanted)
    except RuntimeError:
        raise Problem(f"{wanted!r} is no device.", "Use cpu, cuda, cuda:1 or mps.") from None
    there = {
        "cpu": True,
        "cuda": torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there.get(device.type, False):
        raise Problem(
            f"There is no device {wanted!r} on this machine, or this build of torch "
            f"({torch.__version__}) cannot use it.",
            f"Use {_best_device()}, or install the build of torch that serves the card.",
        )
    return device


def device_name(device: torch.device) -> str:
    """What to call the device on screen."""
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)} ({device})"
    return {"cpu": "CPU", "mps": "Apple GPU"}.get(device.type, str(device))


def environment(device: torch.device) -> Environment:
    """What a report needs to know of this machine."""
    return Environment(
        app=__version__,
        python=sys.version.split()[0],
        platform=platform.platform(),
        processor=platform.processor() or platform.machine(),
        device=device_name(device),
        threads=torch.get_num_threads(),
        packages={name: _version(name) for name in _PACKAGES},
    )


def start_peak(device: torch.device) -> None:
    """Begins to watch for the most memory that the device will hold."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_bytes(device: torch.device) -> int | None:
    """The most memory held since `start_peak`; on a CPU what this process holds now."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return int(psutil.Process().memory_info().rss) if device.type == "cpu" else None


def release_memory() -> None:
    """Gives what is no longer referenced back to the device."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _best_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
