"""A stand-in for a card's graphs on a CPU: it records the very operations that a run consists of.

A replay runs no line of the program: it repeats what was called, on the same tensors, and leaves
each result in the tensor that it was left in the first time. A number of the host's that went into
a call is the number of the recording for ever, as it is in a graph.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from app.models.fixed.passes import Passes

_ASKS_THE_HOST = ("_local_scalar_dense", "nonzero", "is_nonzero", "equal", "_unique2")


class _Listening(TorchDispatchMode):
    """Notes every call; one whose answer the host would have to wait for is refused."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.__name__.partition(".")[0] in _ASKS_THE_HOST:
            raise RuntimeError(f"{func.__name__} waits for the device")
        found = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, found))
        return found


class Tape:
    """Records runs, and remembers how often it did, and how often they were repeated."""

    def __init__(self) -> None:
        self.recorded = 0
        self.replayed = 0

    def record(self, run):
        with _Listening() as heard:
            run()
        self.recorded += 1
        calls = heard.calls

        def replay() -> None:
            self.replayed += 1
            for func, args, kwargs, left in calls:
                _leave(func(*args, **kwargs), left)

        return replay


def _leave(made: Any, left: Any) -> None:
    """Puts results where the first ones were left; a view or a changed tensor is there already."""
    single = isinstance(made, torch.Tensor)
    pairs = [(made, left)] if single else zip(tree_leaves(made), tree_leaves(left), strict=True)
    for new, old in pairs:
        if isinstance(new, torch.Tensor) and new.data_ptr() != old.data_ptr():
            old.copy_(new)


class Tapes:
    """Makes a tape for each room; counts what all of them did."""

    def __init__(self, tape=Tape) -> None:
        self.made: list[Tape] = []
        self._tape = tape

    def __call__(self) -> Tape:
        self.made.append(self._tape())
        return self.made[-1]

    @property
    def recorded(self) -> int:
        return sum(tape.recorded for tape in self.made)

    @property
    def replayed(self) -> int:
        return sum(tape.replayed for tape in self.made)


def taped(tape=Tape) -> tuple[Passes, Tapes]:
    """Passes that are recorded and replayed on a CPU."""
    tapes = Tapes(tape)
    return Passes("graphs", recorder=tapes), tapes
