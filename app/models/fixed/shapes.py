"""The few shapes that passes are padded to, so that each can be recorded once and replayed."""

from __future__ import annotations

from app.library.fixed_memory import PASS_WIDTHS

WIDTHS = PASS_WIDTHS
"""Rows that a fixed pass may have.

Up to 8 none is padded, for kernels differ there: bitsandbytes 0.50 multiplies 5 rows with the 4-bit
weights as they are, and for 6 to 8 unpacks some of them first (at 8 rows 46 % of Llama 8B's on an
H200, fewer on smaller cards). Kernels for more rows work
in tiles of 16 or more; their limits lie at 16, 32, 48 and 64 rows, which no padding crosses.
"""
LARGEST = WIDTHS[-1]
FIRST_KEYS = 256
"""Keys that attention sums over at least; each next number is twice as large up to _DOUBLED."""
_DOUBLED = 1024
"""From here on there is a number halfway between one and its double: every key has its price."""
_PROMPT = 8
"""A pass that wants so many rows fewer than it feeds is one over a prompt."""


def width_of(rows: int) -> int:
    """The width that a pass of so many rows, at most LARGEST, is padded to."""
    return next(width for width in WIDTHS if rows <= width)


def is_prompt(fed: int, wanted: int) -> bool:
    """Whether a pass that feeds so many rows and wants the last ones reads a prompt."""
    return fed - wanted >= _PROMPT


def widths_up_to(rows: int) -> tuple[int, ...]:
    """Every width that passes of 1 to so many rows are padded to."""
    most = width_of(min(rows, LARGEST))
    return tuple(width for width in WIDTHS if width <= most)


def least_rows(width: int) -> int:
    """The fewest rows that are padded to a width."""
    place = WIDTHS.index(width)
    return WIDTHS[place - 1] + 1 if place else 1


def padded_shapes(rows: int, *, start: int, capacity: int, room: int) -> list[tuple[int, int]]:
    """The width and the keys of every pass of up to so many rows that begins at `start` or behind
    it, and ends within the capacity, in memory of this room.
    """
    found = []
    for width in widths_up_to(rows):
        last = capacity - least_rows(width)  # where a pass may begin that is padded so
        if start <= last:
            found += [(width, keys) for keys in keys_between(start + width, last + width, room)]
    return found


def keys_of(end: int, room: int) -> int:
    """How many keys a pass sums over whose padded rows end there, in memory of this room."""
    keys = FIRST_KEYS
    while keys < end:
        keys *= 2
    halfway = 3 * keys // 4
    if keys > _DOUBLED and end <= halfway:
        keys = halfway
    return min(keys, room)


def keys_between(start: int, end: int, room: int) -> tuple[int, ...]:
    """Every number of keys of passes whose padded rows end at `start` to `end`, both included."""
    found = [keys_of(start, room)]
    while found[-1] < keys_of(end, room):
        found.append(keys_of(found[-1] + 1, room))
    return tuple(found)
