"""The card that tests/gpu runs on, its memory, and a small pair of models there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from app.models.warm import collect
from app.run.record import RunRecord
from app.run.settings import RunSettings
from app.selftest.runs import PAIR
from app.studies.workbench import Workbench

CARD = torch.device("cuda", 0)
REAL = True
"""False where a CPU rehearses: what only a card can tell is not asked for then."""

ON_A_CARD = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no graphics card for torch"),
    # What a driver or a library there warns of is not what these tests are about.
    pytest.mark.filterwarnings("default"),
]
"""Marks of every test that needs a card."""

QUIET: dict[str, Any] = {"report": lambda progress: None, "pause": lambda: None}


def tiny_settings(**changes: Any) -> RunSettings:
    """Settings of a run of the tiny pair on the card, greedy and in fp32 unless told otherwise."""
    fixed = {
        "pair": PAIR,
        "prompt": "one two three, one two three, one two",
        "raw": True,
        "ignore_end_of_text": True,
        "max_new_tokens": 32,
        "precision": "fp32",
        "draft_precision": changes.get("precision", "fp32"),
        "device": str(CARD),
        "baseline": False,
    }
    return RunSettings(**{**fixed, **changes})


def run_on(
    bench: Workbench, settings: RunSettings, watch: Callable[[Any], None] = lambda event: None
) -> RunRecord:
    """The record of a run; `watch` sees each event when it is told."""
    events: list[Any] = []

    def emit(event: Any) -> None:
        events.append(event)
        watch(event)

    bench.run("run", settings, emit=emit, costing=False, remembered=False, **QUIET)
    record = RunRecord.begin(events[0])
    for event in events:
        record.apply(event)
    return record


def plant(patch: Any, owner: Any, name: str, act: Callable[[], None], *, at: int = 1) -> None:
    """Lets `act` be done just before the call of this number of a function or a method."""
    whole, calls = getattr(owner, name), 0

    @functools.wraps(whole)
    def planted(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            act()
        return whole(*args, **kwargs)

    patch.setattr(owner, name, planted)


class Ballast:
    """All memory that torch could still take on the card, from `take` until `release`.

    The driver keeps its own: torch is forbidden to ask it for more, and what torch keeps for later
    is taken down to the smallest block.
    """

    def __init__(self) -> None:
        self._held: list[Tensor] = []

    def take(self) -> None:
        """From now on every allocation on the card fails."""
        torch.cuda.synchronize(CARD)
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(0.0, CARD)
        size = 1 << max(torch.cuda.memory_reserved(CARD), 512).bit_length()
        while size >= 512:  # the smallest block that torch hands out
            try:
                self._held.append(torch.empty(size, dtype=torch.uint8, device=CARD))
            except torch.OutOfMemoryError:
                size //= 2

    def release(self) -> None:
        """Gives it back."""
        self._held.clear()
        torch.cuda.set_per_process_memory_fraction(1.0, CARD)
        collect()


def held_bytes() -> tuple[int, int]:
    """What tensors hold of the card's memory, and what torch keeps of it for them."""
    collect()
    return torch.cuda.memory_allocated(CARD), torch.cuda.memory_reserved(CARD)
