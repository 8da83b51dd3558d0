"""The fast one of the page's two clocks: frames, as often as the machine can spare the time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

FASTEST_MS = 33
"""Between two frames of a window that costs little."""

SLOWEST_MS = 160
"""Between two frames of a window that costs much: a reader still sees text flow."""

SHARE_OF_MACHINE = 0.01
"""How much of all cores together a window may take: models on a CPU want every one of them."""


class FrameClock(QObject):
    """Calls for frames, and for fewer where they, and the painting they cause, cost too much."""

    def __init__(
        self,
        frame: Callable[[], None],
        parent: QObject | None = None,
        *,
        spent: Callable[[], float] = time.process_time,
        cores: int | None = None,
    ) -> None:
        """`spent` tells the processor seconds that this process has taken so far."""
        super().__init__(parent)
        self._frame, self._spent = frame, spent
        self._share = SHARE_OF_MACHINE * (cores or os.cpu_count() or 1)
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._tick)
        self._before = 0.0

    def start(self) -> None:
        """Calls for frames from now on."""
        self._before = self._spent()
        self._timer.start(FASTEST_MS)

    def stop(self) -> None:
        """Calls for no more frames."""
        self._timer.stop()

    def pause_ms(self) -> int:
        """How long to wait for the next frame, by what was spent since this was last asked."""
        now = self._spent()
        cost, self._before = now - self._before, now
        return int(min(max(1000 * cost / self._share, FASTEST_MS), SLOWEST_MS))

    def _tick(self) -> None:
        pause = self.pause_ms()
        self._frame()
        if self._timer.isActive() and pause != self._timer.interval():
            self._timer.setInterval(pause)
