"""What a guess of a chain costs, or a level of a tree, that a session makes as a whole: measured
here.
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
    length: int
    """Guesses of each."""


class TreeAsked(NamedTuple):
    """The trees that a run asks for."""

    how: Growing
    length: int
    """Levels of each."""


WholeAsked = ChainAsked | TreeAsked


def time_whole(
    session: object,
    text: Sequence[int],
    asked: WholeAsked,
    *,
    clock: Clock,
    pause: Callable[[], None],
) -> float | None:
    """Median seconds of a draft behind a text, by its guesses or levels; None where the session
    makes none.

    Raises Cancelled when `pause` does.
    """
    make = _prepared(session, text, asked, pause)
    whole = None if make is None else _median_of(make, clock, pause)
    return None if whole is None else whole / asked.length


def _prepared(
    session: object, text: Sequence[int], asked: WholeAsked, pause: Callable[[], None]
) -> Callable[[], object | None] | None:
    """What makes such a draft, once what it needs is done; None where the session makes none."""

    def advance(done: int, total: int) -> None:
        pause()

    behind, lengths = len(text) - 1, [asked.length]
    if isinstance(asked, TreeAsked):
        if not isinstance(session, TreeSession):
            return None
        session.prepare_trees(lengths, asked.how, behind=behind, advance=advance)
        return partial(session.tree, text, asked.length, how=asked.how, told=Told())
    if not isinstance(session, ChainSession):
        return None
    session.prepare_chain(lengths, asked.how, behind=behind, advance=advance)
    told = Told([0.5] * asked.length if asked.how.draws else ())
    return partial(session.chain, text, asked.length, how=asked.how, told=told)


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
