"""The history as the window uses it: opened when first asked for, and only in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from app.gui.background import Background
from app.gui.continuation import Earlier, earlier_of, goes_on_from
from app.history import History
from app.run.problems import Problem
from app.run.record import RunRecord

_Result = TypeVar("_Result")
_LET_GO_S = 1.0


class KeptRuns:
    """Asks the history in threads; answers come when the background delivers."""

    def __init__(self, path: Path | None, background: Background) -> None:
        self.path = path
        self._background = background
        self._opening = threading.Lock()
        self._history: History | None = None
        self._closed = False

    @property
    def keeps(self) -> bool:
        """Whether there is a file to keep runs in."""
        return self.path is not None

    @property
    def trouble(self) -> str:
        """What a person should know of the file's state; empty while all is well."""
        return self._history.trouble if self._history else ""

    def ask(
        self,
        work: Callable[[History], _Result],
        then: Callable[[_Result], None],
        otherwise: Callable[[Problem], None],
    ) -> None:
        """Does `work` with the history in a thread; one of the others gets what came of it."""
        self._background.start(lambda: work(self._opened()), then, otherwise)

    def add(
        self, record: RunRecord, then: Callable[[], None], otherwise: Callable[[Problem], None]
    ) -> None:
        """Keeps a run."""
        self.ask(lambda history: history.add(record), lambda _: then(), otherwise)

    def find_earlier(
        self,
        record: RunRecord,
        then: Callable[[str, Earlier | None], None],
        otherwise: Callable[[Problem], None],
    ) -> None:
        """Looks up what was written up to the end of the run that a record goes on from.

        `then` gets that run's id, and None where it, or one before it, is not kept.
        """
        run = record.settings.continues
        self.ask(
            lambda history: earlier_in(history, record), lambda found: then(run, found), otherwise
        )

    def close(self) -> None:
        """Lets go of the file; call it when the background has ended its work."""
        self._closed = True
        if self._opening.acquire(timeout=_LET_GO_S):
            if self._history is not None:
                self._history.close()
            self._opening.release()

    def _opened(self) -> History:
        with self._opening:
            if self._closed:
                raise Problem("The window has been closed.", "Open Foretoken again.")
            if self.path is None:
                raise Problem("No run is kept here.", "Export a run to keep it.")
            if self._history is None:
                self._history = History(self.path)
            return self._history


def earlier_in(history: History, record: RunRecord) -> Earlier | None:
    """What the runs wrote that a record goes on from, if all of them are kept as they were."""
    chain = [record]
    while chain[-1].settings.continues:
        try:
            before = history.get(chain[-1].settings.continues)
        except Problem:
            return None
        known = any(before.run == record.run for record in chain)
        if known or not goes_on_from(chain[-1].settings, before):
            return None
        chain.append(before)
    return earlier_of(reversed(chain[1:]))
