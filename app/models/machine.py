"""The machine that models run on: which device, how fast, how much memory."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import psutil
import torch
from torch import Tensor

from app import __version__
from app.models.card import card_limits
from app.run.events import Environment
from app.run.problems import DoesNotFit, Problem

_PACKAGES = ("torch", "transformers", "tokenizers", "bitsandbytes", "accelerate")


def devices_here() -> list[torch.device]:
    """The devices that torch can use, the one that is taken by itself first: cards (AMD's are
    "cuda" too), Apple's GPU, the CPU.
    """
    cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    found = [torch.device("cuda", number) for number in range(cards)]
    found += [torch.device("mps")] if torch.backends.mps.is_available() else []
    return [*found, torch.device("cpu")]


def choose_device(wanted: str | None) -> torch.device:
    """The device asked for, or the best there is. Raises Problem for one that is not there."""
    found = devices_here()
    if wanted is None:
        return found[0]
    try:
        device = torch.device(wanted)
    except RuntimeError:
        raise Problem(f"{wanted!r} is no device.", "Use cpu, cuda, cuda:1 or mps.") from None
    same = [one for one in found if (one.type, one.index or 0) == (device.type, device.index or 0)]
    if not same:
        raise Problem(
            f"There is no device {wanted!r} on this machine, or this build of torch "
            f"({torch.__version__}) cannot use it.",
            f"Use {' or '.join(map(str, found))}, or install the build of torch that serves the "
            "card.",
        )
    return same[0]


def make_current(device: torch.device) -> None:
    """Makes a card the one that events and kernels go to which are told of no device."""
    if device.type == "cuda":
        torch.cuda.set_device(device.index or 0)


def on_device(values: Sequence[float], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Numbers of the host as a tensor [n]; on a card, without waiting for what it has to do yet."""
    return moved(torch.tensor(values, dtype=dtype), device)


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor on another device; what goes to a card is not waited for.

    Memory of the host that is not pinned is read before this returns, up to 64 KB of it without
    waiting for the card's other work (CUDA's programming guide, on concurrent execution).
    """
    return tensor.to(device, non_blocking=device.type == "cuda")


def device_name(device: torch.device) -> str:
    """What to call the device on screen."""
    if device.type == "cuda":
        way = f"ROCm, {device}" if torch.version.hip else str(device)
        return f"{torch.cuda.get_device_name(device)} ({way})"
    return {"cpu": "CPU", "mps": "Apple GPU"}.get(device.type, str(device))


def environment(device: torch.device) -> Environment:
    """What a report needs to know of this machine."""
    driver, clock, power = card_limits(device)
    return Environment(
        app=__version__,
        python=sys.version.split()[0],
        platform=platform.platform(),
        processor=processor_name(),
        device=device_name(device),
        threads=torch.get_num_threads(),
        packages={name: _version(name) for name in _PACKAGES},
        driver=driver,
        clock_mhz=clock if device.type == "cuda" else processor_clock_mhz(),
        power_limit_w=power,
    )


def out_of_memory(what: str) -> DoesNotFit:
    """What to say when a device's memory is exhausted."""
    return DoesNotFit(
        f"The device's memory is exhausted ({what}).",
        "Choose a smaller precision (nf4), a shorter context or fewer new tokens, or close other "
        "programs that use the device.",
    )


class PeakWatch:
    """The most memory that was held: a card counts it; on a CPU it is sampled when told to."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._sampled = 0
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)

    def sample(self) -> None:
        """Looks at what this process holds now."""
        if self._device.type == "cpu":
            self._sampled = max(self._sampled, int(psutil.Process().memory_info().rss))

    @property
    def bytes(self) -> int | None:
        """The most so far; None where it cannot be known."""
        if self._device.type == "cuda":
            return torch.cuda.max_memory_allocated(self._device)
        return self._sampled or None


def processor_name() -> str:
    """The processor as its maker calls it, where the system says so."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            named = [
                line.partition(":")[2].strip() for line in file if line.startswith("model name")
            ]
    except OSError:
        named = []
    return next(iter(named), "") or platform.processor() or platform.machine()


def processor_clock_mhz() -> float | None:
    """The processor's highest clock, or where only that is told, its present one."""
    try:
        clock: Any = psutil.cpu_freq()  # None on some systems, whatever its types say
    except (AttributeError, OSError, NotImplementedError, RuntimeError):
        return None
    return (clock.max or clock.current or None) if clock else None


def release_memory() -> None:
    """Gives what is no longer referenced back to the device."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
