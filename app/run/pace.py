"""How fast something comes on, and how long it will still take: for the terminal and the window."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from app.run.events import Progress, Struct

_WINDOW_SECONDS = 15.0
"""The speed is that of so many seconds back: long enough to be calm, short enough to be true."""
_FIRST_SECONDS = 0.5
"""Nothing is said before so much was seen."""


class Speed(Struct, frozen=True):
    """How a stage comes on."""

    per_second: float
    """In the stage's own unit."""
    seconds_left: float | None
    """None where the total is not known, or nothing comes."""


class Pace:
    """Watches the progress of one stage after another. What was there at first is no speed."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._stage = ""
        self._seen: deque[tuple[float, float]] = deque()
        """When, and how much was done then."""

    def speed(self, progress: Progress) -> Speed | None:
        """The speed as of this progress; None until there is a basis for one."""
        now = self._now()
        if progress.stage != self._stage or (self._seen and progress.done < self._seen[-1][1]):
            self._stage = progress.stage
            self._seen.clear()
        self._seen.append((now, progress.done))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _WINDOW_SECONDS:
            self._seen.popleft()
        then, before = self._seen[0]
        if now - then < _FIRST_SECONDS:
            return None
        per_second = (progress.done - before) / (now - then)
        if progress.total is None or per_second <= 0:
            return Speed(per_second, None)
        return Speed(per_second, max(progress.total - progress.done, 0.0) / per_second)

    def words(self, progress: Progress) -> str:
        """For example "35.2 MB/s, 2 min left"; the speed for bytes alone; "" without a basis."""
        found = self.speed(progress)
        if found is None or progress.total is None or progress.unit == "s":
            return ""  # a stage in seconds says itself how long it takes
        told = [f"{found.per_second / 1e6:.1f} MB/s"] if progress.unit == "bytes" else []
        if found.seconds_left is not None:
            told.append(f"{in_words(found.seconds_left)} left")
        return ", ".join(told)


def in_words(seconds: float) -> str:
    """A duration as a person says it: seconds, minutes or hours."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
