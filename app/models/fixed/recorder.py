"""What records the work of a pass once, and repeats it: graphs of a card, behind a protocol."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import torch

from app.models.exhausted import is_out_of_memory
from app.models.fixed.capture_stream import CaptureStream, NoFreeStreamError
from app.models.machine import release_memory
from app.run.problems import Cancelled, release_frames

NO_MEMORY = "no memory for its graphs"
"""Why a model's passes are eager where they could have been recorded."""
_Shape = TypeVar("_Shape")
_Held = TypeVar("_Held")

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
    """Graphs of one card, which share a stream of their own and a pool of memory.

    Only one of them may be replayed at a time. Both are given back with the last graph.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._own: CaptureStream | None = None
        self._is_warm = False

    def record(self, run: Run) -> Run:
        """As the protocol says. A run that would wait for the card is refused before anything is
        recorded: a recording that fails midway leaves the card's allocator in disorder. Whatever
        fails, the stream that was the current one is so again.
        """
        before = torch.cuda.current_stream(self._device)
        with torch.cuda.device(self._device), torch.cuda.stream(before):
            own = self._own = self._own or CaptureStream(self._device)
            _warm(run, own.stream, before, twice=not self._is_warm)
            self._is_warm = True
            replay = own.capture(run)
            replay()  # the first one takes it to the card
        return replay


class NotRecorded(NamedTuple):
    """Why something could not be recorded, in words."""

    reason: str
    for_now: bool
    """Whether it may be possible later: where others had taken what it needs."""


def record_all(
    shapes: Sequence[_Shape],
    record: Callable[[_Shape], None],
    advance: Callable[[int, int], None],
    *,
    what: str = "they",
) -> NotRecorded | None:
    """Records one shape after the other; the first that cannot be recorded ends it, and the reason
    names them as `what`.

    Raises what `advance` does, which is told before each how many are done, and of how many.
    """
    for done, shape in enumerate(shapes):
        advance(done, len(shapes))
        try:
            record(shape)
        except Cancelled:
            raise
        except Exception as error:  # a model's code may do anything that a graph cannot hold
            found = _why(error, what)
            release_frames(error)
            release_memory()
            return found
    return None


class Recordings(dict[_Shape, _Held]):
    """What one recorder has recorded, by its shape, until something cannot be: then no more is
    tried, or none for now.
    """

    def __init__(self, recorder: Recorder | None) -> None:
        """None for what is computed each time."""
        super().__init__()
        self.recorder = recorder
        self.is_forgotten = False
        """Whether it was let go of: nothing can be had of it any more."""
        self._failed: NotRecorded | None = None

    def record(self, run: Run) -> Run:
        """As the recorder does, which there has to be."""
        assert self.recorder is not None
        return self.recorder.record(run)

    def forget(self) -> None:
        """Lets go of all of it, and of what recorded it."""
        self.clear()
        self.recorder = None
        self.is_forgotten = True

    def try_again(self) -> None:
        """Has what was lacking for now be tried once more."""
        if self._failed is not None and self._failed.for_now:
            self._failed = None

    def complete(
        self,
        shapes: Iterable[_Shape],
        record: Callable[[_Shape], None],
        advance: Callable[[int, int], None],
    ) -> str:
        """Has `record` put those here that are not; why some cannot be, or empty. Raises what
        `advance` does.
        """
        missing = [shape for shape in shapes if shape not in self]
        if missing and self._failed is None:
            self._failed = record_all(missing, record, advance)
        return self._failed.reason if missing and self._failed is not None else ""


def _why(error: Exception, what: str) -> NotRecorded:
    if is_out_of_memory(error):
        return NotRecorded(NO_MEMORY, for_now=True)
    said = (str(error).strip() or type(error).__name__).splitlines()[0].split(". ")[0]
    taken = isinstance(error, NoFreeStreamError)
    return NotRecorded(f"{what} cannot be captured ({said})", for_now=taken)


def _warm(run: Run, stream: Any, current: Any, *, twice: bool) -> None:
    """Lets libraries choose their kernels and take their own memory, on the stream that is
    recorded. The first time of a run may wait for the card; of others like it no more.
    """
    stream.wait_stream(current)
    try:
        with torch.cuda.stream(stream):
            if twice:
                run()
            with _no_waiting():
                run()
    finally:  # also where it fails midway: what was begun writes where others will
        current.wait_stream(stream)


def recorder_for(device: torch.device) -> Callable[[], Recorder] | None:
    """What makes recorders for a device; None for one that has nothing to record."""
    return partial(CudaGraphs, device) if device.type == "cuda" else None


@contextmanager
def _no_waiting() -> Iterator[None]:
    """Whatever would wait for the card raises RuntimeError."""
    before = torch.cuda.get_sync_debug_mode()
    try:
        watch_waits("error")
        yield
    finally:
        watch_waits(before)


def watch_waits(mode: int | str) -> None:
    """Says what torch does where the host waits. It warns once that it may not see every wait, when
    the mode is set already: that is no error, whatever warnings are.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.cuda.set_sync_debug_mode(mode)
