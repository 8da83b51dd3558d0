"""Work that would hold up the window, in threads whose results the frame clock fetches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

from app.run.problems import Problem

_Result = TypeVar("_Result")


class Background:
    """Starts work and delivers its results, in the thread that calls `deliver`; else they wait."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self._done: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def start(
        self,
        work: Callable[[], _Result],
        then: Callable[[_Result], None],
        otherwise: Callable[[Problem], None],
    ) -> None:
        """Does `work` in a thread; `then` gets its result, `otherwise` the Problem it raised."""
        thread = threading.Thread(
            target=self._do, args=(work, then, otherwise), name="window background", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def deliver(self) -> None:
        """Hands over what is done. Raises what a piece of work raised, if it was no Problem."""
        try:
            while True:
                self._done.get_nowait()()
        except Empty:
            self._threads = [thread for thread in self._threads if thread.is_alive()]

    def wait(self, timeout: float) -> bool:
        """Waits until all work is done, for so long; says whether it is."""
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
        return not any(thread.is_alive() for thread in self._threads)

    def _do(
        self,
        work: Callable[[], _Result],
        then: Callable[[_Result], None],
        otherwise: Callable[[Problem], None],
    ) -> None:
        try:
            result = work()
        except Problem as problem:
            found = problem
            self._done.put(lambda: otherwise(found))
        except Exception as error:  # a bug: it is raised where the window can show it
            bug = error
            self._done.put(lambda: _raise(bug))
        else:
            self._done.put(lambda: then(result))


def _raise(error: Exception) -> None:
    raise error
