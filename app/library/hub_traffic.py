"""What downloading threads and the one that waits for them tell each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from app.library.whole_folder import Pause
from app.run.events import Progress
from app.run.problems import Cancelled

_POLL_SECONDS = 0.1
_LEAVE_SECONDS = 2.0
"""How long cancelled threads are waited for; one that waits for an answer ends by itself."""


class Traffic:
    """A download: how far it has come, what it waits for, and whether it is to stop."""

    def __init__(self, stage: str, report: Callable[[Progress], None], pause: Pause) -> None:
        self.total: int | None = None
        self._stage = stage
        self._report = report
        self._pause = pause
        self._done = 0
        self._said: dict[int, str] = {}
        """By the thread that says it."""
        self._ends: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def add(self, count: int) -> None:
        """Counts bytes that are here; fewer than none for those that had to be thrown away."""
        with self._lock:
            self._done += count

    def check(self) -> None:
        """Raises Cancelled if the download is to stop."""
        if self._stop.is_set():
            raise Cancelled

    def say(self, words: str) -> None:
        """Tells what this thread does instead of the transfer; "" when it goes on."""
        with self._lock:
            self._said.pop(threading.get_ident(), None)
            if words:
                self._said[threading.get_ident()] = words

    def wait(self, seconds: float, words: str) -> None:
        """Waits, telling why. Raises Cancelled if the download is to stop meanwhile."""
        self.say(words)
        try:
            if self._stop.wait(seconds):
                raise Cancelled
        finally:
            self.say("")

    @contextmanager
    def ending(self, end: Callable[[], None]) -> Iterator[None]:
        """While it is entered, a stop calls `end`, which wakes a thread that waits for bytes."""
        with self._lock:
            self._ends.append(end)
        try:
            yield
        finally:
            with self._lock:
                self._ends.remove(end)

    def run(self, works: Sequence[Callable[[], None]]) -> None:
        """Runs these side by side and tells of them until all are done; the first error ends all.

        They run in threads, so that a cancel need not wait for the network.
        """
        errors: list[Exception] = []
        threads = [
            threading.Thread(target=self._one, args=(work, errors), daemon=True) for work in works
        ]
        for thread in threads:
            thread.start()
        try:
            while alive := [thread for thread in threads if thread.is_alive()]:
                self._pause()
                self._show(len(alive))
                alive[0].join(_POLL_SECONDS)
        except BaseException:
            self._halt()
            end = time.monotonic() + _LEAVE_SECONDS
            for thread in threads:
                thread.join(max(end - time.monotonic(), 0.0))
            raise
        self._show(1)
        if errors:
            raise errors[0]

    def _one(self, work: Callable[[], None], errors: list[Exception]) -> None:
        """Runs one; what it raises stops the others too, and is raised where they are awaited."""
        try:
            work()
        except Exception as error:  # re-raised, or put in words, by the thread that waits
            with self._lock:
                errors.append(error)
            self._halt()

    def _halt(self) -> None:
        """Tells every thread to stop."""
        self._stop.set()
        with self._lock:
            for end in self._ends:
                end()

    def _show(self, working: int) -> None:
        """Reports how far it has come; or what goes on instead, if no thread at work transfers."""
        with self._lock:
            words = next(reversed(self._said.values()), "") if len(self._said) >= working else ""
        stage = words or self._stage
        if self.total is None:
            self._report(Progress(stage))
        else:
            self._report(Progress(stage, float(self._done), float(self.total), "bytes"))
