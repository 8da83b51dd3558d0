"""What a device can do at best, and how much of a pass it is at work: measured here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

import torch

from app.decoding.clock import Clock, clock_for
from app.models.exhausted import memory_guard
from app.models.language_model import LanguageModel
from app.models.session import MAX_CHUNK
from app.run.problems import Cancelled, Problem

_COPIED = {"cpu": 256 << 20}
_COPIED_ON_CARD = 2 << 30
"""Bytes of the block that is copied: far more than any cache holds."""
_COPIES = 12
_WARMING = 2
_PASSES = 8
_CONTEXT = 256

Pause = Callable[[], None]


def copied_bytes(device: torch.device, free: int) -> int:
    """How large a block to copy where so many bytes are free: two of them have to fit well."""
    return min(_COPIED.get(device.type, _COPIED_ON_CARD), max(free // 8, 1 << 20))


def copy_bandwidth(
    device: torch.device, size: int, *, pause: Pause, clock: Clock | None = None
) -> float:
    """Bytes a second that a copy of so many bytes reads and writes: 2 × size / median time.

    Raises Cancelled when `pause` does, Problem if memory does not suffice.
    """
    clock = clock or clock_for(device)
    taken = []
    with memory_guard("while the memory's speed was measured"):
        source = torch.full((size,), 1, dtype=torch.uint8, device=device)
        target = torch.full_like(source, 2)
        for _ in range(_COPIES + _WARMING):
            pause()
            start = clock.mark()
            target.copy_(source)
            end = clock.mark()
            clock.wait()
            taken.append(clock.seconds(start, end))
    return 2 * size / median(taken[_WARMING:])


def busy_seconds(
    model: LanguageModel, *, pause: Pause, context: int = _CONTEXT
) -> tuple[float | None, str]:
    """Seconds in which a card was at work in a pass of one row, and why they are not known.

    Raises Cancelled when `pause` does, Problem if memory does not suffice.
    """
    if model.device.type != "cuda":
        return None, f"there are no launches on {model.device.type}"
    text = [(7 * place) % model.rows for place in range(context)]
    session, clock = model.open(len(text) + 1), clock_for(model.device)
    session.prepare(1, behind=len(text) - 1, advance=lambda done, total: pause())
    for end in [*range(MAX_CHUNK, len(text), MAX_CHUNK), len(text), len(text)]:
        pause()
        session.read(text, rows=1, upto=end)
    clock.wait()
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as watched:
            for _ in range(_PASSES):
                pause()
                session.read(text, rows=1)
            clock.wait()
        seconds = covered(_device_spans(watched)) / 1e6 / _PASSES
    except (Cancelled, Problem):
        raise
    except Exception as error:  # a driver that lets no one profile may refuse in any way
        return None, f"torch's profiler failed ({type(error).__name__})"
    return (seconds, "") if seconds else (None, "torch's profiler saw no kernel")


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """The length of the union of spans, each from a start to an end."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(end - max(start, reached), 0.0)
        reached = max(reached, end)
    return total


def _device_spans(watched: Any) -> list[tuple[float, float]]:
    """When kernels and copies began and ended on a card, in microseconds."""
    return [
        (event.time_range.start, event.time_range.end)
        for event in watched.events() or ()
        if event.device_type.name == "CUDA" and not getattr(event, "is_user_annotation", False)
    ]
