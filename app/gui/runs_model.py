"""The list of kept runs as a table: one row a run, and one line here for each column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.gui.plain import tip, visible
from app.history import Entry
from app.run.figures import FIGURES, NOTHING
from app.run.methods import METHODS

Index = QModelIndex | QPersistentModelIndex

ROOT = QModelIndex()


class ColumnSpec(NamedTuple):
    """A column: its heading, what it shows of a run, and whether that is a number."""

    title: str
    text: Callable[[Entry], str]
    number: bool = False
    width: int = 10
    """In characters; the last column takes what is left."""


def when(entry: Entry) -> str:
    """When the run began, to the minute, as its own clock told it."""
    try:
        return datetime.fromisoformat(entry.started).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return visible(entry.started)


def method_label(entry: Entry) -> str:
    """The method as the form calls it, behind the badge of a run that is not lossless."""
    known = METHODS.get(entry.method)
    label = known.label if known else visible(entry.method)
    return f"{visible(entry.badge)} · {label}" if entry.badge else label


def figure_text(name: str, value: float | None) -> str:
    """A figure of the list, written as everywhere."""
    return NOTHING if value is None else FIGURES[name].written(value)


COLUMNS: tuple[ColumnSpec, ...] = (
    ColumnSpec("When", when, width=15),
    ColumnSpec("Pair", lambda entry: visible(entry.pair), width=13),
    ColumnSpec("Method", method_label, width=15),
    ColumnSpec("γ", lambda entry: str(entry.draft_length), number=True, width=2),
    ColumnSpec(
        "Speed-up",
        lambda entry: figure_text("decode_speedup", entry.decode_speedup),
        number=True,
        width=8,
    ),
    ColumnSpec(
        "Acceptance",
        lambda entry: figure_text("acceptance_rate", entry.acceptance_rate),
        number=True,
        width=10,
    ),
    ColumnSpec("Outcome", lambda entry: entry.outcome, width=11),
    ColumnSpec("Tags", lambda entry: ", ".join(map(visible, entry.tags)), width=12),
    ColumnSpec("Prompt", lambda entry: visible(entry.prompt_start)),
)
"""The columns, from left to right."""


class RunsModel(QAbstractTableModel):
    """The runs that a search has found."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.entries: tuple[Entry, ...] = ()

    def show_entries(self, entries: Sequence[Entry]) -> None:
        """Shows these runs instead of those before."""
        self.beginResetModel()
        self.entries = tuple(entries)
        self.endResetModel()

    def rowCount(self, parent: Index = ROOT) -> int:
        """A row a run."""
        return 0 if parent.isValid() else len(self.entries)

    def columnCount(self, parent: Index = ROOT) -> int:
        """As many as the table of columns has."""
        return 0 if parent.isValid() else len(COLUMNS)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """What a cell shows; the whole of it on hover."""
        column = COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.text(self.entries[index.row()])
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip(column.text(self.entries[index.row()]))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(column.number)
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """The headings."""
        column = COLUMNS[section]
        return heading(orientation, role, title=column.title, number=column.number)


def heading(
    orientation: Qt.Orientation, role: int, *, title: str, number: bool = False
) -> str | Qt.AlignmentFlag | None:
    """What a column's heading answers; rows have none."""
    if orientation != Qt.Orientation.Horizontal:
        return None
    if role == Qt.ItemDataRole.DisplayRole:
        return title
    return alignment(number) if role == Qt.ItemDataRole.TextAlignmentRole else None


def alignment(number: bool) -> Qt.AlignmentFlag:
    """Numbers stand to the right."""
    side = Qt.AlignmentFlag.AlignRight if number else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
