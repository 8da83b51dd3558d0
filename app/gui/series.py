"""The record's numbers along the text, read once as rounds come: what charts draw. No Qt here."""

from __future__ import annotations

import math
from array import array
from collections import deque

import numpy as np

from app.run.cost import PassCosts
from app.run.events import LaneName, Round
from app.run.metrics import PositionAcceptance, ratio
from app.run.record import Repetition, RunRecord
from app.run.tree_shape import pass_rows

RECENT = 16
"""How many of the latest rounds "recent" means."""

_SETTLED = 4
"""A speed over fewer rounds than this says nothing."""

MOST_POINTS = 240
"""A curve is drawn with at most about so many points."""

MOST_BARS = 80
"""Rounds beyond this many share bars."""


class LaneSeries:
    """One repetition's numbers, a value a round; NaN where there was nothing to divide by."""

    def __init__(self) -> None:
        self.acceptance, self.recent_acceptance = array("d"), array("d")
        self.tokens_per_loop, self.committed = array("d"), array("d")
        self.written, self.recent_speed = array("d"), array("d")
        self.outgrown = array("d")
        """1 for a round that is plain because the draft's context is full."""
        self._reached: list[int] = []
        self._accepted_at: list[int] = []
        self._drafting_rounds = 0
        self._drafted = self._accepted = 0
        self._recent: deque[tuple[int, int, int, float]] = deque(maxlen=RECENT)

    def __len__(self) -> int:
        return len(self.committed)

    def read(self, repetition: Repetition) -> None:
        """Takes in the rounds that came since the last call."""
        for round_ in repetition.rounds[len(self) :]:
            self._take(round_)

    def by_position(self) -> list[PositionAcceptance]:
        """Acceptance at each place of the draft, as `metrics.acceptance_by_position` gives it."""
        return [
            PositionAcceptance(place, reached, accepted, self._drafting_rounds)
            for place, (reached, accepted) in enumerate(
                zip(self._reached, self._accepted_at, strict=True), 1
            )
        ]

    def _take(self, round_: Round) -> None:
        accepted, drafted = round_.count("accepted"), round_.drafted
        committed = len(round_.committed)
        self._accepted += accepted
        self._drafted += drafted
        self._recent.append((accepted, drafted, committed, round_.phases.total))
        sums = [sum(column) for column in zip(*self._recent, strict=True)]
        written = (self.written[-1] if self.written else 0) + committed
        self.acceptance.append(_drawn(ratio(self._accepted, self._drafted)))
        self.recent_acceptance.append(_drawn(ratio(sums[0], sums[1])))
        settled = len(self._recent) >= _SETTLED
        self.recent_speed.append(_drawn(ratio(sums[2], sums[3]) if settled else None))
        self.committed.append(committed)
        self.outgrown.append(round_.outgrown)
        self.written.append(written)
        self.tokens_per_loop.append(_drawn(ratio(written, len(self.committed))))
        self._take_positions(accepted, accepted + round_.count("rejected"), drafted)

    def _take_positions(self, accepted: int, tested: int, drafted: int) -> None:
        self._drafting_rounds += drafted > 0
        missing = tested - len(self._reached)
        self._reached += [0] * missing
        self._accepted_at += [0] * missing
        for place in range(tested):
            self._reached[place] += 1
            self._accepted_at[place] += place < accepted


class RunSeries:
    """The series of the newest repetition of both lanes."""

    def __init__(self) -> None:
        self.draft_length = 0
        self.pass_rows = 1
        """Rows of the target's pass over a whole draft."""
        self.costs: PassCosts | None = None
        self._lanes: dict[LaneName, tuple[Repetition | None, LaneSeries]] = {}
        self.read(None)

    def lane(self, name: LaneName) -> LaneSeries:
        """The series of a lane; empty if it has not opened."""
        return self._lanes[name][1]

    def read(self, record: RunRecord | None) -> None:
        """Takes in what has come; another repetition begins a series anew."""
        self.draft_length = record.settings.draft_length if record else 0
        self.pass_rows = pass_rows(record.settings, self.draft_length) if record else 1
        self.costs = record.costs if record else None
        for name in ("speculative", "baseline"):
            repetitions = record.repetitions(name) if record else []
            newest = repetitions[-1] if repetitions else None
            known, series = self._lanes.get(name, (None, LaneSeries()))
            if newest is not known:
                series = LaneSeries()
            if newest is not None:
                series.read(newest)
            self._lanes[name] = (newest, series)


def curve(values: array, along: array | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Points of a curve over the rounds (or `along`), thinned evenly; the last is always there."""
    y = np.array(values, dtype=float)
    x = np.arange(1, len(y) + 1, dtype=float) if along is None else np.array(along, dtype=float)
    y = np.where(np.isfinite(y), y, np.nan)
    step = max(1, math.ceil(len(y) / MOST_POINTS))
    keep = np.arange(len(y) - 1, -1, -step)[::-1]
    return x[keep], y[keep]


def bars(values: array) -> tuple[np.ndarray, np.ndarray, int]:
    """Middles and heights of bars, and how many rounds share one: their mean is its height."""
    y = np.array(values, dtype=float)
    shared = max(1, math.ceil(len(y) / MOST_BARS))
    edges = np.arange(0, len(y), shared)
    if not len(y):
        return y, y, shared
    sizes = np.diff(np.append(edges, len(y)))
    return edges + (sizes + 1) / 2, np.add.reduceat(y, edges) / sizes, shared


def highest(*curves: array) -> float:
    """The largest finite value of some curves; 0 if there is none."""
    largest = 0.0
    for values in curves:
        y = np.array(values, dtype=float)
        finite = y[np.isfinite(y)]
        largest = max(largest, float(finite.max()) if len(finite) else 0.0)
    return largest


def _drawn(value: float | None) -> float:
    """A gap in the curve for a number that does not exist."""
    return math.nan if value is None else value
