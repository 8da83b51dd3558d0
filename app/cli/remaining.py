"""How long a bench will take still, by the runs that it has done."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from app.run.events import Progress
from app.run.pace import in_words

Show = Callable[[Progress], None]


class Remaining:
    """Adds to the progress of runs how many are done, and about how much time is left."""

    def __init__(self, show: Show, now: Callable[[], float] = time.monotonic) -> None:
        self._show = show
        self._now = now
        self._began: tuple[float, float] | None = None
        """When the first run began, and how many were done then."""

    def show(self, progress: Progress) -> None:
        """Shows progress; that of runs with words of how far it has come."""
        if progress.unit == "runs" and progress.total:
            told = f"{progress.done:g} of {progress.total:g} runs done{self._left(progress)}"
            progress = msgspec.structs.replace(progress, stage=f"{progress.stage} ({told})")
        self._show(progress)

    def _left(self, progress: Progress) -> str:
        """The time left, once a run has been done."""
        began, before = self._began = self._began or (self._now(), progress.done)
        done = progress.done - before
        if done <= 0 or progress.total is None:
            return ""
        seconds = (self._now() - began) / done * (progress.total - progress.done)
        return f", about {in_words(seconds)} left"
