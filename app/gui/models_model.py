"""The list of models as a table: one row a model, and one line here for each column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from PySide6.QtCore import QAbstractTableModel, QObject, Qt
from PySide6.QtGui import QColor

from app.gui.colours import Colours
from app.gui.models_words import (
    NOTHING,
    bytes_on_disk,
    count_words,
    kind_words,
    parameters,
    size_words,
    state_words,
)
from app.gui.plain import tip, visible
from app.gui.runs_model import ROOT, Index, alignment, heading
from app.library.inventory import Listed
from app.library.overview import Standing

Which = Literal["all", "here", "unusable"]
"""Which models are shown: all, those on this machine, or those that cannot be used."""

ORDER: tuple[Standing, ...] = ("ready", "to be converted", "to be fetched", "faulty")


class ColumnSpec(NamedTuple):
    """A column: its heading, what it shows, what it is sorted by, and what it means."""

    title: str
    text: Callable[[Listed], str]
    value: Callable[[Listed], Any]
    """Compared within the column; None comes last."""
    meaning: str
    number: bool = False
    width: int = 10
    """In characters; the last column takes what is left."""


COLUMNS: tuple[ColumnSpec, ...] = (
    ColumnSpec(
        "Name",
        lambda row: visible(row.title),
        lambda row: row.title.casefold(),
        "What the catalogue calls it, or how its folder or file is called.",
        width=22,
    ),
    ColumnSpec(
        "State",
        state_words,
        lambda row: ORDER.index(row.standing),
        "Ready: it loads now. To be fetched: by Fetch, or when a run needs it. Converted at first "
        "use: a GGUF file is made into a folder first. Cannot be used: what the panel at the right "
        "tells.",
        width=18,
    ),
    ColumnSpec(
        "Kind",
        kind_words,
        kind_words,
        "What the pairs of the catalogue use it as: target or draft. A head is a small layer that "
        "guesses for one target. GGUF: one file, which is converted. An entry: a line of a "
        "models.yaml that cannot be read.",
        width=10,
    ),
    ColumnSpec(
        "Parameters",
        lambda row: count_words(parameters(row)),
        parameters,
        "How many numbers its weights are, as the headers of its files say; of what is not here, "
        "as the catalogue says.",
        number=True,
        width=10,
    ),
    ColumnSpec(
        "Weights",
        lambda row: (row.examined.quantisation if row.examined else "") or NOTHING,
        lambda row: (row.examined.quantisation if row.examined else "") or None,
        "How the weights are held on the disk: a type, a GGUF format, or a method of quantising. "
        "In memory they are held as the Playground's Precision says.",
        width=9,
    ),
    ColumnSpec(
        "On disk",
        lambda row: size_words(bytes_on_disk(row)),
        bytes_on_disk,
        "What its files take on this machine.",
        number=True,
        width=7,
    ),
    ColumnSpec(
        "Where",
        lambda row: row.where,
        lambda row: row.where.casefold(),
        "Whose place on this machine it lies in; the catalogue, if it is not here.",
        width=13,
    ),
)
"""The columns, from left to right."""

NAME, STATE, KIND = 0, 1, 2
"""The columns with the longest words; by the second, models are sorted at first."""

WIDENED = (KIND, NAME, STATE)
"""They take the room that is left in this order."""


def arranged(
    rows: Sequence[Listed], *, words: str, which: Which, column: int, falling: bool
) -> list[Listed]:
    """The rows that hold all words, in the order of a column; equal ones by name."""
    wanted = words.casefold().split()
    kept = [row for row in rows if _is_shown(row, which) and _holds(row, wanted)]
    kept.sort(key=lambda row: row.title.casefold())
    value = COLUMNS[column].value
    known = [row for row in kept if value(row) is not None]
    known.sort(key=value, reverse=falling)
    return known + [row for row in kept if value(row) is None]


class ModelsModel(QAbstractTableModel):
    """The models that a search has left."""

    def __init__(self, colours: Colours, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.rows: tuple[Listed, ...] = ()
        self.colours = colours

    def show_rows(self, rows: Sequence[Listed]) -> None:
        """Shows these rows instead of those before."""
        self.beginResetModel()
        self.rows = tuple(rows)
        self.endResetModel()

    def rowCount(self, parent: Index = ROOT) -> int:
        """A row a model."""
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = ROOT) -> int:
        """As many as the table of columns has."""
        return 0 if parent.isValid() else len(COLUMNS)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """What a cell shows; the whole of it on hover, and what it means."""
        column, row = COLUMNS[index.column()], self.rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return column.text(row)
            case Qt.ItemDataRole.ToolTipRole:
                return tip("\n".join(filter(None, (column.text(row), row.remedy))))
            case Qt.ItemDataRole.TextAlignmentRole:
                return alignment(column.number)
            case Qt.ItemDataRole.ForegroundRole:
                return self._colour(row)
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """The headings; what a column means on hover."""
        column = COLUMNS[section]
        if role == Qt.ItemDataRole.ToolTipRole and orientation == Qt.Orientation.Horizontal:
            return tip(f"{column.title}\n{column.meaning}")
        return heading(orientation, role, title=column.title, number=column.number)

    def _colour(self, row: Listed) -> QColor | None:
        """What is not here is quiet, and what cannot be used is marked; its state says so too."""
        if row.standing == "faulty":
            return QColor(self.colours.corrected.text)
        return None if row.here else QColor(self.colours.muted)


def _is_shown(row: Listed, which: Which) -> bool:
    if which == "here":
        return row.here
    return which == "all" or row.standing == "faulty"


def _holds(row: Listed, words: Sequence[str]) -> bool:
    """Whether all of these words stand in what the row shows, or in its path or name."""
    told = [column.text(row) for column in COLUMNS]
    told += [str(row.path or ""), row.entry.name if row.entry else ""]
    text = "\n".join(told).casefold()
    return all(word in text for word in words)
