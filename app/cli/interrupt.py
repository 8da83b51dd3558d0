"""Ctrl+C: the first asks the work to stop at its next pause, a second ends the program at once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from app.run.problems import Cancelled

STOPPED = 130
"""The exit code of a command that Ctrl+C has ended."""

_SAID = b"\nStopping; Ctrl+C again ends at once.\n"


class Interrupt:
    """While it is entered, Ctrl+C makes `pause` raise Cancelled."""

    def __init__(self) -> None:
        self.seen = False
        self._before: Any = None
        self._listens = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Interrupt:
        if self._listens:
            self._before = signal.signal(signal.SIGINT, self._notice)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._listens:
            signal.signal(signal.SIGINT, self._before)

    def pause(self) -> None:
        """Raises Cancelled once Ctrl+C was pressed."""
        if self.seen:
            raise Cancelled

    def _notice(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # Not through a console: the signal may have come in the midst of a print.
        with contextlib.suppress(OSError):
            os.write(2, _SAID)
