"""Time on a machine that works behind one's back: marks in its stream, edges on the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch


class Clock(Protocol):
    """Two kinds of time: `now` on the host, and marks that a device passes."""

    def now(self) -> float:
        """Seconds on a clock that never goes back, without those that were skipped."""
        ...

    def mark(self) -> Any:
        """A mark in the device's stream of work."""
        ...

    def seconds(self, start: Any, end: Any) -> float:
        """Seconds between two marks, both of which the device has passed."""
        ...

    def wait(self) -> None:
        """Waits until the device has done all that it was given."""
        ...

    def skip(self, seconds: float) -> None:
        """Leaves out what has just been spent on something else: answering a question, say."""
        ...


class HostClock:
    """For a device that has finished when a call returns: the CPU."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def now(self) -> float:
        """The host's monotonic time."""
        return time.perf_counter() - self._skipped

    def mark(self) -> float:
        """The time now."""
        return self.now()

    def seconds(self, start: float, end: float) -> float:
        """The difference of two marks."""
        return end - start

    def wait(self) -> None:
        """Nothing: a CPU has done it."""

    def skip(self, seconds: float) -> None:
        """Leaves these seconds out."""
        self._skipped += seconds


@dataclass(frozen=True, slots=True)
class _Mark:
    """An event in the stream, and what had been skipped until then."""

    event: Any
    skipped: float


class EventClock:
    """For a card with a stream of work: events in it, read after the round's one copy home."""

    def __init__(
        self, event: Callable[..., Any], stream: Callable[[], tuple[Any, ...]] = tuple
    ) -> None:
        """`stream` says where events are recorded; an empty answer is the current stream."""
        self._event = event
        self._stream = stream
        self._skipped = 0.0

    def now(self) -> float:
        """The host's monotonic time."""
        return time.perf_counter() - self._skipped

    def mark(self) -> _Mark:
        """An event in the device's stream."""
        event = self._event(enable_timing=True)
        event.record(*self._stream())
        return _Mark(event, self._skipped)

    def seconds(self, start: _Mark, end: _Mark) -> float:
        """Seconds between two events; waits for the second if it must."""
        end.event.synchronize()
        elapsed = float(start.event.elapsed_time(end.event)) / 1000
        return max(elapsed - (end.skipped - start.skipped), 0.0)

    def wait(self) -> None:
        """Waits for an event that comes behind everything else."""
        self.mark().event.synchronize()

    def skip(self, seconds: float) -> None:
        """Leaves these seconds out: the card stood still meanwhile."""
        self._skipped += seconds


def clock_for(device: torch.device) -> Clock:
    """The clock that tells the truth on this device."""
    if device.type == "cuda":
        return EventClock(torch.cuda.Event, lambda: (torch.cuda.current_stream(device),))
    if device.type == "mps":
        return EventClock(torch.mps.event.Event)
    return HostClock()
