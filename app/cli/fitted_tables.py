"""Tables as wide as the terminal: no word and no value is broken, columns that have no room make
parts of their own, and of a table that says which columns it needs most the last may stay away.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from rich.cells import cell_len
from rich.table import Table as Drawn

from app.cli.tables import table
from app.reports.html.tables import Table
from app.run.figures import NOTHING

_AROUND = 3
"""Cells that a column takes beside its own: a space at either side and a line."""

MOST_PARTS = 2
"""Parts of a table that says which columns it needs most."""


class Fitted(msgspec.Struct, frozen=True):
    """A table as it can be shown: its parts, and the columns that have no room."""

    parts: tuple[Drawn, ...]
    left_out: tuple[str, ...] = ()


def fitted(whole: Table, room: int) -> Fitted:
    """A table in so many cells of a terminal."""
    columns = [_Column.of(whole, place) for place in range(len(whole.head))]
    parts = _parts(whole, columns, room)
    shown = parts[:MOST_PARTS] if whole.needed else parts
    away = {place for part in parts for place in part} - {place for part in shown for place in part}
    return Fitted(
        tuple(
            _drawn(
                whole, columns, part, room=room, title=whole.caption + (", continued" * bool(at))
            )
            for at, part in enumerate(shown)
        ),
        tuple(whole.head[place] for place in sorted(away)),
    )


class _Column(msgspec.Struct, frozen=True):
    """How many cells a column needs."""

    words: bool
    """Whether its cells may be broken between words: not those of numbers."""
    least: int
    """No word of it is broken, and no number."""
    lines: int
    """No cell is broken, but its name may be."""
    whole: int
    """Nothing is broken."""

    @classmethod
    def of(cls, whole: Table, place: int) -> _Column:
        """The needs of the column at this place."""
        name, cells = whole.head[place], [row[place] for row in whole.rows]
        words = not all(cell == NOTHING or cell[:1].isdigit() for cell in cells)
        name_alone = max(map(cell_len, name.split()), default=1)
        broken = [word for cell in cells for word in cell.split()] if words else cells
        least = max([name_alone, *map(cell_len, broken)])
        lines = max([name_alone, *map(cell_len, cells)])
        return cls(words, least, lines, max(lines, cell_len(name)))


def _parts(whole: Table, columns: Sequence[_Column], room: int) -> list[list[int]]:
    """The places of the columns of each part: those that name a row, and as many others as fit."""
    keys = [0]
    while len(keys) < len(columns) - 1 and columns[len(keys)].words:
        keys.append(len(keys))
    others = [place for place in range(len(columns)) if place not in keys]
    if whole.needed:
        others.sort(key=lambda place: whole.needed.index(whole.head[place]))
    parts = [list(keys)]
    for place in others:
        wide = _width(columns[one].least for one in (*parts[-1], place)) > room
        if wide and len(parts[-1]) > len(keys):
            parts.append(list(keys))
        parts[-1].append(place)
    return [sorted(part) for part in parts]


def _width(columns: Iterable[int]) -> int:
    """Cells of a table whose columns have so many."""
    return sum(cells + _AROUND for cells in columns) + 1


def _drawn(
    whole: Table, columns: Sequence[_Column], part: Sequence[int], *, room: int, title: str
) -> Drawn:
    """A part, its columns as wide as there is room for; too long a word breaks where it must."""
    rows = [tuple(row[place] for place in part) for row in whole.rows]
    drawn = table(tuple(whole.head[place] for place in part), rows, title=title)
    widths = [columns[place].least for place in part]
    spare = room - _width(widths)
    if spare < 0:
        return drawn
    for wanted in ("lines", "whole"):
        for at, place in enumerate(part):
            more = min(spare, getattr(columns[place], wanted) - widths[at])
            widths[at] += more
            spare -= more
    for column, width in zip(drawn.columns, widths, strict=True):
        column.width = width
    return drawn
