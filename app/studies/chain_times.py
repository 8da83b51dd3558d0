"""What a guess costs in a draft that a session makes as a whole, measured here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

from app.decoding.clock import Clock
from app.models.picking import ChainSession, Picking, Told

_REPEATS = 9
"""Chains behind the median, after one that only warms up."""


class ChainAsked(NamedTuple):
    """The chains that a run asks for."""

    how: Picking
    guesses: int
    """Of each."""


def time_chains(
    session: object,
    text: Sequence[int],
    asked: ChainAsked,
    *,
    clock: Clock,
    pause: Callable[[], None],
) -> float | None:
    """Median seconds of a chain behind a text, by its guesses; None where the session makes none.

    Raises Cancelled when `pause` does.
    """
    if not isinstance(session, ChainSession):
        return None
    how, count = asked
    session.prepare_chain([count], how, behind=len(text) - 1, advance=lambda done, total: pause())
    told = Told([0.5] * count if how.draws else ())
    taken = []
    for _ in range(_REPEATS + 1):
        pause()
        clock.wait()
        start = clock.now()
        if session.chain(text, count, how=how, told=told) is None:
            return None
        clock.wait()
        taken.append(clock.now() - start)
    return median(taken[1:]) / count
