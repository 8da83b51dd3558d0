"""Whether a device has room for models of random weights, told before any of them is made."""

from __future__ import annotations

import torch

from app.library.memory import Plan, estimate, weights
from app.library.model_size import ModelSize, size_of_shape
from app.library.random_shapes import RandomShape
from app.models.devices import device_memory
from app.models.random_pair import PACKS
from app.run.problems import DoesNotFit, Problem
from app.run.random_bench import RandomBench
from app.run.settings import Precision
from app.run.sizes import bytes_in_words


def free_bytes(device: torch.device) -> int:
    """What models can take on a device now. Raises Problem for one that does not answer."""
    here = (device.type, device.index or 0)
    for one in device_memory():
        found = torch.device(one.name)
        if (found.type, found.index or 0) == here:
            return one.free_bytes
    raise Problem(f"The device {device} does not tell its memory.", "Try another device.")


def needed_bytes(
    target: RandomShape,
    draft: RandomShape | None,
    wanted: RandomBench,
    *,
    precision: Precision,
    device: torch.device,
) -> int:
    """What the bench takes at its peak: both models, the caches of both lanes, and on a CPU that
    packs its layers the target once more, as transformers runs it.
    """
    size = _sized(target)
    plan = Plan(
        target=size,
        precision=precision,
        device=str(device),
        draft=_sized(draft) if draft else None,
        draft_precision=precision,
        drafter="model" if draft else "nothing",
        tokens=wanted.prompt + wanted.tokens,
        draft_length=wanted.draft_length,
        passes=wanted.passes,
    )
    again = device.type == "cpu" and precision in PACKS
    held = sum(part.total for part in estimate(plan))
    return held + (weights(size, precision, str(device)) if again else 0)


def refuse_too_large(name: str, precision: Precision, needed: int, *, free: int, on: str) -> None:
    """Raises DoesNotFit where more is needed than is free."""
    if needed > free:
        raise DoesNotFit(
            f"{name} in {precision} needs about {bytes_in_words(needed)} here, and "
            f"{bytes_in_words(free)} are free on {on}.",
            "Choose a smaller shape or precision, --random-draft none, or close other programs.",
        )


def _sized(shape: RandomShape) -> ModelSize:
    return size_of_shape(shape.sizes)
