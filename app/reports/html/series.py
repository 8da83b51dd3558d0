"""A repetition's numbers along its loops: what the charts draw."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from app.run.events import Round
from app.run.metrics import Counts, ratio

RECENT = 16
"""How many of the latest loops "recent" means."""

_SETTLED = 4
"""A speed over fewer loops than this says nothing."""


class LoopSeries(msgspec.Struct, frozen=True):
    """A value a loop; None where there was nothing to divide by."""

    seconds: list[float]
    """Seconds of decoding when the loop was committed, on the lane's own clock."""
    acceptance: list[float | None]
    """Guesses accepted / guesses made, so far."""
    committed: list[int]
    """Tokens that the loop added."""
    tokens_per_loop: list[float | None]
    """Their mean so far."""
    speed: list[float | None]
    """Tokens a second over the latest loops."""
    outgrown: list[bool]
    """Whether nothing was guessed because the draft's context is full."""


def loop_series(rounds: Sequence[Round]) -> LoopSeries:
    """The series of these rounds."""
    series = LoopSeries([], [], [], [], [], [])
    tally, clock = Counts(), 0.0
    recent: deque[tuple[int, float]] = deque(maxlen=RECENT)
    for round_ in rounds:
        tally = tally.plus([round_])
        clock += round_.phases.total
        recent.append((len(round_.committed), round_.phases.total))
        series.seconds.append(clock)
        series.acceptance.append(tally.acceptance_rate)
        series.committed.append(len(round_.committed))
        series.tokens_per_loop.append(tally.tokens_per_loop)
        series.speed.append(_speed(recent))
        series.outgrown.append(round_.outgrown)
    return series


def _speed(recent: deque[tuple[int, float]]) -> float | None:
    """Tokens a second of some loops; None while they are too few."""
    if len(recent) < _SETTLED:
        return None
    return ratio(sum(tokens for tokens, _ in recent), sum(seconds for _, seconds in recent))
