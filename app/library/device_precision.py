"""Which precisions a device takes, and the one that a model opens in unless one is asked for.

The same table serves whoever loads a model and whoever plans its memory before that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from app.run.settings import Precision

Refused = Mapping[str, Collection[str]]
"""By kind of device ("cpu", "cuda"), the precisions that those of this machine cannot take."""

NONE_REFUSED: Refused = {}
_ON_CARD: tuple[Precision, ...] = ("nf4", "bf16", "fp16", "fp32")
"""What a graphics card opens a model in: the first of these that it takes."""
_ROOM = 1.4
"""Memory that a model takes on a CPU while it is loaded, as a multiple of its weights."""


def device_kind(device: str) -> str:
    """The kind of a device: "cuda" of "cuda:1"."""
    return device.partition(":")[0]


def takes(device: str, precision: str, refused: Refused) -> bool:
    """Whether nothing is known that keeps a device from a precision."""
    kind = device_kind(device)
    never = "fp16" if kind == "cpu" else "int8"
    return precision != never and precision not in refused.get(kind, ())


def default_precision(
    kind: str,
    parameters: int,
    *,
    is_taken: Callable[[Precision], bool],
    free_bytes: int | None,
) -> Precision:
    """What a model of so many weights opens in on a kind of device.

    `is_taken` says whether the device takes a precision, `free_bytes` what is free on it.
    """
    if kind == "cuda":
        return next(filter(is_taken, _ON_CARD), "fp32")
    if kind != "cpu":
        return "bf16"
    narrow = free_bytes is not None and _ROOM * 4 * parameters > free_bytes
    return "bf16" if narrow else "fp32"
