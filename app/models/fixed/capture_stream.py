"""The streams of a card that graphs are recorded on: each by one room only."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import torch

_POOLED = 32
"""Streams that torch hands out in turn for each card, again and again."""
_taken: dict[int, Any] = {}
"""Those that graphs have been recorded on at any time, by their handles. They are taken again
first: up to torch 2.11 each keeps the workspaces that libraries took on it (32 MB on an H200).
"""
_in_use: set[int] = set()
"""Handles of those that graphs have been recorded on which are still there."""
_failed: list[Any] = []
"""Graphs whose recording could not even be ended. They stay: torch's allocator of pinned memory may
go on asking them what is theirs, and their end would take the workspaces of their stream along.
"""


class NoFreeStreamError(RuntimeError):
    """As many rooms are recorded as there are streams."""


class CaptureStream:
    """A stream that no one else records on, the graphs recorded on it, and their pool of memory.

    torch gives the workspaces that libraries took on a stream back with any graph that was recorded
    on it (`~CUDAGraph`, from 2.12), though others may write to them: so all graphs of a stream are
    let go of together, and only then is it free for others.
    """

    def __init__(self, device: torch.device) -> None:
        """Raises NoFreeStreamError."""
        self.stream = _free_stream(device)
        self.pool: Any = torch.cuda.graph_pool_handle()
        self._graphs: list[Any] = []
        _taken[self.stream.cuda_stream] = self.stream
        _in_use.add(self.stream.cuda_stream)
        ended = weakref.finalize(self, _let_go, self._graphs, self.stream.cuda_stream)
        ended.atexit = False

    def capture(self, run: Callable[[], None]) -> Callable[[], None]:
        """Records a run on the current device, which is the stream's, and answers what repeats it.

        Raises what torch and the run do.
        """
        graph = torch.cuda.CUDAGraph()
        try:
            with (
                _no_collecting(),
                torch.cuda.graph(
                    graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"
                ),
            ):
                run()
        except BaseException:
            if _end_recording(self.pool):
                _failed.append(graph)
                _taken.pop(self.stream.cuda_stream, None)  # it may not be fit for others: in use
            else:  # memory did not suffice: it gives its own back with the others
                self._graphs.append(graph)
            _renew_generator()
            self.pool = torch.cuda.graph_pool_handle()
            raise
        self._graphs.append(graph)
        return partial(self._replay, len(self._graphs) - 1)

    def _replay(self, place: int) -> None:
        self._graphs[place].replay()


def _free_stream(device: torch.device) -> Any:
    for handle, known in _taken.items():
        if handle not in _in_use and known.device.index == (device.index or 0):
            return known
    for _ in range(_POOLED):
        stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        if stream.cuda_stream not in _in_use:
            return stream
    raise NoFreeStreamError("every stream of the card has graphs already")


def _let_go(graphs: list[Any], handle: int) -> None:
    graphs.clear()
    if handle in _taken:
        _in_use.discard(handle)


@contextmanager
def _no_collecting() -> Iterator[None]:
    """What is left in cycles stays a while: the end of a graph among it would end the recording."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _end_recording(pool: Any) -> bool:
    """Has torch take no more memory for a pool: where a recording could not even be ended
    (`CUDAGraph::capture_end` raised at once), it still would, and the pool would never be free.
    Whether that was so.
    """
    index = torch.cuda.current_device()
    try:
        torch._C._cuda_endAllocateToPool(index, pool)
    except (RuntimeError, AttributeError):  # it was ended
        return False
    torch._C._cuda_releasePool(index, pool)
    return True


def _renew_generator() -> None:
    """Has whatever draws from the card's default generator be able to.

    In torch 2.11 and before, that generator's state is told of every capture, and one that could
    not be ended is never over for it: each draw raises from then on. A copy has the same seed and
    place, and knows of no capture. Graphs stay with the state that they were captured with, which
    they need for draws alone, and no pass draws. Where states are told of captures that draw only,
    as in torch 2.13, the copy makes no difference.
    """
    with suppress(RuntimeError, AttributeError, IndexError):  # what made the capture fail is told
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        generator.graphsafe_set_state(generator.clone_state())
