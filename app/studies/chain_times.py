"""What a guess costs in a draft that a session makes as a whole, or a level of guesses that branch,
measured here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import NamedTuple

from app.decoding.clock import Clock
from app.models.growing import Growing, TreeSession
from app.models.picking import ChainSession, Picking, Told

_REPEATS = 9
"""Drafts behind the median, after one that only warms up."""


class ChainAsked(NamedTuple):
    """The chains that a run asks for."""

    how: Picking
    guesses: int
    """Of each."""


class TreeAsked(NamedTuple):
    """The trees that a run asks for."""

    how: Growing
    levels: int
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
    chain = partial(session.chain, text, count, how=how, told=told)
    whole = _median_of(chain, clock, pause)
    return None if whole is None else whole / count


def time_trees(
    session: object,
    text: Sequence[int],
    asked: TreeAsked,
    *,
    clock: Clock,
    pause: Callable[[], None],
) -> float | None:
    """Median seconds of a tree behind a text, by its levels; None where the session makes none.

    Raises Cancelled when `pause` does.
    """
    if not isinstance(session, TreeSession):
        return None
    how, levels = asked
    session.prepare_trees([levels], how, behind=len(text) - 1, advance=lambda done, total: pause())
    whole = _median_of(partial(session.tree, text, levels, how=how), clock, pause)
    return None if whole is None else whole / levels


def _median_of(
    make: Callable[[], object | None], clock: Clock, pause: Callable[[], None]
) -> float | None:
    """Median seconds of a draft; None where it is not made."""
    taken = []
    for _ in range(_REPEATS + 1):
        pause()
        clock.wait()
        start = clock.now()
        if make() is None:
            return None
        clock.wait()
        taken.append(clock.now() - start)
    return median(taken[1:])
