"""What a graphics card says of itself, as far as its driver and the libraries at hand can tell."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

import msgspec
import torch

_THROTTLED = {
    0x04: "its power limit",
    0x08: "a slowdown of the hardware",
    0x20: "its temperature",
    0x40: "its temperature, by the hardware",
    0x80: "a power brake",
}
"""Bits of NVML's reasons for a lowered clock that name an obstacle, not a choice."""


class CardState(msgspec.Struct, frozen=True):
    """A card at one moment; None for what cannot be read."""

    throttled_by: tuple[str, ...] = ()
    """Why its clock is lowered just now."""
    used_elsewhere: float | None = None
    """The largest share of its units that another program kept busy of late."""
    held_elsewhere: int | None = None
    """Bytes of its memory that this process does not hold."""


def card_limits(device: torch.device) -> tuple[str | None, float | None, float | None]:
    """The driver's version, the highest clock in MHz, and the power limit in watts."""
    if device.type != "cuda":
        return None, None, None
    handle = _handle(device.index or 0)
    if handle is None:
        return _driver_of_the_system(), None, None
    nvml, card = handle
    driver = _asked(nvml, "nvmlSystemGetDriverVersion")
    clock = _asked(nvml, "nvmlDeviceGetMaxClockInfo", card, 1)  # 1: that of the multiprocessors
    power = _asked(nvml, "nvmlDeviceGetEnforcedPowerLimit", card)
    return (
        str(driver) if driver else _driver_of_the_system(),
        None if clock is None else float(clock),
        None if power is None else power / 1000,
    )


def card_state(device: torch.device) -> CardState:
    """The card now. What torch alone can tell is the memory that others hold."""
    free, total = torch.cuda.mem_get_info(device)
    held = max(total - free - torch.cuda.memory_reserved(device), 0)
    handle = _handle(device.index or 0)
    if handle is None:
        return CardState(held_elsewhere=held)
    nvml, card = handle
    bits = _asked(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", card) or 0
    reasons = tuple(words for bit, words in _THROTTLED.items() if bits & bit)
    return CardState(reasons, _used_elsewhere(nvml, card), held)


def card_memory(number: int) -> tuple[int, int] | None:
    """Bytes of a card that are free, and that there are, as NVML tells them: torch would open a
    context on the card, which takes memory itself. None where NVML is missing or does not know.
    """
    handle = _handle(number)
    if handle is None:
        return None
    nvml, card = handle
    told = _asked(nvml, "nvmlDeviceGetMemoryInfo", card)
    return None if told is None else (int(told.free), int(told.total))


def _used_elsewhere(nvml: Any, card: Any) -> float | None:
    """None unless the driver also names this process: else its numbers are not ours to tell."""
    samples = _asked(nvml, "nvmlDeviceGetProcessUtilization", card, 0) or []
    shares = {sample.pid: sample.smUtil / 100 for sample in samples}
    if os.getpid() not in shares:
        return None
    return max((share for pid, share in shares.items() if pid != os.getpid()), default=0.0)


@cache
def _handle(index: int) -> tuple[Any, Any] | None:
    """NVML and its handle of a card; None where the library is not installed or refuses."""
    try:
        import pynvml

        pynvml.nvmlInit()
        properties = torch.cuda.get_device_properties(index)
        uuid = f"GPU-{properties.uuid}"
        return pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except (ImportError, AttributeError):
        return None
    except pynvml.NVMLError:
        return None


def _asked(nvml: Any, name: str, *arguments: Any) -> Any:
    """The answer of one of NVML's functions; None where this card or driver has none."""
    try:
        return getattr(nvml, name)(*arguments)
    except (AttributeError, nvml.NVMLError):
        return None


def _driver_of_the_system() -> str | None:
    """The driver's version where Linux tells it."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8", errors="replace") as file:
            found = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", file.readline())
    except OSError:
        return None
    return found.group(1) if found else None
