"""A pytest plugin: the tests of tests/gpu on a CPU that stands in for the card, as far as it can.

Passes are recorded by tapes, memory is what tensors hold, and memory that is exhausted is an
operation that fails. What only a card can tell is not asked for (`cards.REAL`). Use it so:

    PYTHONPATH=tests python -m pytest -p rehearsal tests/gpu/test_lanes_of_graphs.py -k fp32
"""

from __future__ import annotations

import gc
from typing import Any

import cards
import psutil
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from app.models.fixed import choice
from tapes import Tapes

cards.REAL = False
cards.CARD = torch.device("cpu")
cards.ON_A_CARD = [pytest.mark.filterwarnings("default")]

_MEMORY = 8 << 30
_CONTEXT = 512 << 20
"""What a process takes of a card's memory for itself."""


class _Exhausted(TorchDispatchMode):
    """Every operation that needs memory fails."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.is_view or func.__name__.partition(".")[0].endswith("_"):
            return func(*args, **(kwargs or {}))
        raise torch.OutOfMemoryError(f"CUDA out of memory. ({func})")


def _take(self: cards.Ballast) -> None:
    if not self._held:
        self._held = [_Exhausted()]
        self._held[0].__enter__()


def _release(self: cards.Ballast) -> None:
    while self._held:
        self._held.pop().__exit__(None, None, None)


def _allocated(device: Any = None) -> int:
    """Bytes that tensors hold, each storage once."""
    storages: dict[int, int] = {}
    for found in gc.get_objects():
        kind = type(found)
        if kind in (torch.Tensor, torch.nn.Parameter) and found.layout is torch.strided:
            storage = found.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def _free_and_total(device: Any = None) -> tuple[int, int]:
    """As if each engine that runs had a context on the card."""
    engines = [
        child
        for child in psutil.Process().children()
        if "resource_tracker" not in " ".join(child.cmdline())
    ]
    return _MEMORY - _CONTEXT * len(engines), _MEMORY


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the card's place."""
    tapes = Tapes()
    monkeypatch.setattr(choice, "recorder_for", lambda device: tapes)
    monkeypatch.setattr(cards.Ballast, "take", _take)
    monkeypatch.setattr(cards.Ballast, "release", _release)
    monkeypatch.setattr(torch.cuda, "memory_allocated", _allocated)
    monkeypatch.setattr(torch.cuda, "memory_reserved", _allocated)
    monkeypatch.setattr(torch.cuda, "mem_get_info", _free_and_total)
