"""Weights that a card has no room for: where they may go, and what share of a model they are."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import torch

from app.files import cache_folder
from app.run.problems import Damaged, DoesNotFit

_SHARE = 0.85
"""How much of what is free the weights may take: caches and passes need room too."""


def placement(device: torch.device, place: Path, *, allow_offload: bool) -> dict[str, Any]:
    """What `from_pretrained` is told of devices: all on this one, unless a card may be relieved.

    A card that may be is filled first, then the machine's own memory, then the folder `place`.
    """
    if not (allow_offload and device.type == "cuda"):
        return {"device_map": {"": device}}
    free = torch.cuda.mem_get_info(device)[0]
    return {
        "device_map": "sequential",
        "max_memory": {
            device.index or 0: int(_SHARE * free),
            "cpu": int(_SHARE * psutil.virtual_memory().available),
        },
        "offload_folder": str(place),
    }


def share_elsewhere(inner: torch.nn.Module, device: torch.device) -> float:
    """The share of a model's bytes that is not on this device, from 0 to 1.

    What is fetched for every pass, from memory or from a file, stands on the device `meta`.
    """
    total = elsewhere = 0
    for weight in inner.parameters():
        size = weight.numel() * weight.element_size()
        total += size
        elsewhere += 0 if _same(weight.device, device) else size
    return elsewhere / total if total else 0.0


def refuse_unasked(name: str, share: float, *, allow_offload: bool) -> None:
    """Raises Damaged for a model that has not wholly come to its device, unless that is allowed."""
    if share and not allow_offload:
        raise Damaged(
            f"{name}: {100 * share:.0f} % of the weights did not come to the device.",
            "Fetch the model again, or choose a smaller precision.",
        )


def does_not_fit(
    name: str, precision: str, device: torch.device, *, allow_offload: bool
) -> DoesNotFit:
    """What to say when a device has no room for a model's weights."""
    ways = "Choose a smaller model or precision, or close other programs that use the device"
    if device.type == "cuda" and not allow_offload:
        ways += (
            "; or allow offloading (--allow-offload): the weights without room stay in the "
            "machine's memory, which is slow, and the figures are not the card's"
        )
    return DoesNotFit(
        f"The device's memory is exhausted: {name} in {precision} does not fit.", f"{ways}."
    )


def quantised_does_not_fit(name: str, precision: str) -> DoesNotFit:
    """What to say when only a part of a quantised model has room on a card."""
    return DoesNotFit(
        f"{name} in {precision} does not fit into the card's memory, and quantised weights cannot "
        "be offloaded.",
        "Choose a smaller model, or bf16 with offloading; or close other programs that use the "
        "card.",
    )


def offload_note(share: float) -> str:
    """What to know of a model of which this share of the weights is not on its device."""
    return (
        f"{100 * share:.0f} % of the weights are offloaded and are fetched for every pass: the "
        "figures are not those of this card."
    )


@contextmanager
def room_on_disk() -> Iterator[Path]:
    """A folder for what one load has to write to the disk; deleted if the load fails."""
    place = _places() / f"{_own_name(os.getpid())}{uuid4().hex}"
    try:
        yield place
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise


def forget_with(inner: torch.nn.Module, place: Path) -> None:
    """Deletes what a model had to write to the disk, once the model is gone."""
    weakref.finalize(inner, shutil.rmtree, place, ignore_errors=True)


def clear_left_behind() -> None:
    """Deletes what programs of this machine wrote to the disk that ended without tidying up."""
    for place in _places().glob(f"{_own_name('*')}*"):
        pid = place.name.split("-")[-2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(place, ignore_errors=True)


def _places() -> Path:
    return cache_folder() / "offloaded"


def _own_name(process: int | str) -> str:
    """How the folders of a process begin; other machines may share the cache."""
    return f"{hashlib.sha256(platform.node().encode()).hexdigest()[:8]}-{process}-"


def _same(one: torch.device, other: torch.device) -> bool:
    return (one.type, one.index or 0) == (other.type, other.index or 0)
