"""The slow one of the page's two clocks: numbers and charts, a few times a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LARGEST_SHARE = 0.03
"""The largest share of the time that renewing one part may take."""


@dataclass(frozen=True)
class Part:
    """Something to renew, and the seconds between two renewals."""

    renew: Callable[[], None]
    period: float


class SlowClock:
    """Renews parts that are out of date, one a tick, so that no tick is long."""

    def __init__(self, parts: Sequence[Part], clock: Callable[[], float] = time.monotonic) -> None:
        self._parts = parts
        self._clock = clock
        self._due = [0.0] * len(parts)
        self._stale = [True] * len(parts)

    def tick(self) -> None:
        """Renews the stale part that has been due for longest, if one is."""
        stale = [index for index, stale in enumerate(self._stale) if stale]
        index = min(stale, key=self._due.__getitem__, default=None)
        if index is not None and self._clock() >= self._due[index]:
            self._renew(index)

    def touch(self) -> None:
        """Says that what the parts show has changed."""
        self._stale = [True] * len(self._parts)

    def hasten(self) -> None:
        """Says that it has changed so much that every part is due now."""
        self.touch()
        self._due = [0.0] * len(self._parts)

    def renew_all(self) -> None:
        """Renews every part now."""
        for index in range(len(self._parts)):
            self._renew(index)

    def _renew(self, index: int) -> None:
        began = self._clock()
        self._stale[index] = False
        part = self._parts[index]
        part.renew()
        now = self._clock()
        self._due[index] = now + max(part.period, (now - began) / LARGEST_SHARE)
