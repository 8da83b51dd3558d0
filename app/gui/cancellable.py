"""Long work in the background that tells how far it has come and can be cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from app.gui.background import Background
from app.library.whole_folder import Pause
from app.run.events import Progress
from app.run.problems import Cancelled, Problem

_Result = TypeVar("_Result")
Report = Callable[[Progress], None]


class Cancellable:
    """One piece of work at a time; its progress is looked up, and never pushed."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._stop: threading.Event | None = None
        self.progress: Progress | None = None
        """How far it has come; None while nothing goes on."""

    @property
    def running(self) -> bool:
        """Whether work goes on."""
        return self._stop is not None

    @property
    def stopping(self) -> bool:
        """Whether work goes on that was asked to stop."""
        return self._stop is not None and self._stop.is_set()

    def start(
        self,
        first: Progress,
        work: Callable[[Report, Pause], _Result],
        *,
        then: Callable[[_Result], None],
        otherwise: Callable[[Problem], None],
        cancelled: Callable[[], None],
    ) -> None:
        """Does `work` in a thread; one of the others hears what came of it."""
        assert not self.running
        self._stop = stop = threading.Event()
        self.progress = first

        def report(progress: Progress) -> None:
            self.progress = progress

        def pause() -> None:
            if stop.is_set():
                raise Cancelled

        def done() -> Callable[[], None]:
            try:
                result = work(report, pause)
            except Cancelled:
                return cancelled
            except Problem as problem:
                found = problem
                return lambda: otherwise(found)
            return lambda: then(result)

        self._background.start(done, self._end, otherwise)

    def cancel(self) -> None:
        """Asks the work to stop; it does so soon."""
        if self._stop is not None:
            self._stop.set()

    def _end(self, tell: Callable[[], None]) -> None:
        self._stop = self.progress = None
        tell()
