"""What records the work of a pass once, and repeats it: graphs of a card, behind a protocol."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, Protocol

import torch

Run = Callable[[], None]
"""Computes something from tensors into tensors, all of which stay where they are."""


class Recorder(Protocol):
    """Records what runs give a device to do. What it has recorded shares its memory."""

    def record(self, run: Run) -> Run:
        """Runs it at least once, and answers what repeats the same work on the same tensors.

        Raises whatever the device or the run raises where that cannot be recorded.
        """
        ...


class CudaGraphs:
    """Graphs of one card, which share a pool of memory.

    Only one of them may be replayed at a time. The pool is given back with the last graph.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = _recording_stream(device)
        self._pool: Any = torch.cuda.graph_pool_handle()

    def record(self, run: Run) -> Run:
        """As the protocol says. A run that would wait for the card is refused before anything is
        recorded: a recording that fails midway leaves the card's allocator in disorder. Whatever
        fails, the stream that was the current one is so again.
        """
        before = torch.cuda.current_stream(self._device)
        with torch.cuda.device(self._device), torch.cuda.stream(before):
            self._warm(run)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(
                graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"
            ):
                run()
            graph.replay()  # the first one takes it to the card
        replay: Run = graph.replay
        return replay

    def _warm(self, run: Run) -> None:
        """Lets libraries choose their kernels and take their own memory, on the stream that is
        recorded.
        """
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            run()
            with _no_waiting():
                run()
        current.wait_stream(self._stream)


def recorder_for(device: torch.device) -> Callable[[], Recorder] | None:
    """What makes recorders for a device; None for one that has nothing to record."""
    return partial(CudaGraphs, device) if device.type == "cuda" else None


@cache
def _recording_stream(device: torch.device) -> Any:
    """The stream that all graphs of a card are recorded on: cuBLAS keeps memory of its own, tens of
    MB, for every stream that it has worked on.
    """
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


@contextmanager
def _no_waiting() -> Iterator[None]:
    """Whatever would wait for the card raises RuntimeError."""
    before = torch.cuda.get_sync_debug_mode()
    _watch_waits("error")
    try:
        yield
    finally:
        _watch_waits(before)


def _watch_waits(mode: int | str) -> None:
    """Says what torch does where the host waits; it warns once that it may not see every wait."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode(mode)
