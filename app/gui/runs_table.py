"""The list of kept runs on the page; the keyboard does all that the pointer does."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QItemSelectionModel, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from app.gui.runs_model import COLUMNS, RunsModel
from app.history import Entry

_WIDENED = [place for place, column in enumerate(COLUMNS) if not column.number][:-1]
"""The columns of words take the room that is left in this order; the last one takes the rest."""

PADDING = 8
"""What the style sheet gives to either side of a cell, and a little."""


class RunsTable(QTableView):
    """Whole rows are chosen; Enter or a double click opens one."""

    chosen = Signal()
    """Other runs are chosen than before."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("Kept runs")
        self._model = RunsModel(self)
        self.setModel(self._model)
        dress_table(self)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        set_widths(self, [column.width for column in COLUMNS])
        self._widths = [self.columnWidth(place) for place in range(len(COLUMNS))]
        self.selectionModel().selectionChanged.connect(lambda *_: self.chosen.emit())

    @property
    def runs(self) -> list[str]:
        """The runs that are chosen, in the order of the list."""
        return [entry.run for entry in self.entries]

    @property
    def entries(self) -> list[Entry]:
        """The entries that are chosen, in the order of the list."""
        rows = sorted(index.row() for index in self.selectionModel().selectedRows())
        return [self._model.entries[row] for row in rows]

    def show_entries(self, entries: Sequence[Entry]) -> None:
        """Shows these runs; what was chosen stays so, else the first is."""
        wanted, row = set(self.runs), max(self.currentIndex().row(), 0)
        self.selectionModel().blockSignals(True)
        self._model.show_entries(entries)
        rows = [place for place, entry in enumerate(entries) if entry.run in wanted]
        self._choose(rows or ([min(row, len(entries) - 1)] if entries else []))
        self.selectionModel().blockSignals(False)
        widen(self, self._widths, _WIDENED)
        self.viewport().update()
        self.chosen.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shares out the room anew."""
        super().resizeEvent(event)
        widen(self, self._widths, _WIDENED)

    def _choose(self, rows: list[int]) -> None:
        flags = QItemSelectionModel.SelectionFlag
        if rows:
            where = self._model.index(rows[0], 0)
            self.selectionModel().setCurrentIndex(where, flags.ClearAndSelect | flags.Rows)
        for row in rows[1:]:
            self.selectionModel().select(self._model.index(row, 0), flags.Select | flags.Rows)


def dress_table(table: QTableView) -> None:
    """What all tables of the window have in common."""
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    table.setTabKeyNavigation(False)
    table.setShowGrid(False)
    table.setWordWrap(False)
    table.setCornerButtonEnabled(False)
    table.setTextElideMode(Qt.TextElideMode.ElideRight)
    table.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    table.verticalHeader().hide()
    height = round(table.fontMetrics().height() * 1.65)
    table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
    table.verticalHeader().setDefaultSectionSize(height)
    table.horizontalHeader().setStretchLastSection(True)
    table.horizontalHeader().setHighlightSections(False)
    table.horizontalHeader().setMinimumSectionSize(3 * table.fontMetrics().averageCharWidth())


def widen(table: QTableView, widths: Sequence[int], order: Sequence[int]) -> None:
    """Gives columns the room that these widths leave, one after the other, as far as they need
    it.
    """
    spare = table.viewport().width() - sum(widths)
    for place in order:
        more = max(0, min(spare, table.sizeHintForColumn(place) - widths[place]))
        table.setColumnWidth(place, widths[place] + more)
        spare -= more


def set_widths(table: QTableView, widths: Sequence[int]) -> None:
    """Makes columns so many characters wide, and as wide as their headings."""
    header = table.horizontalHeader()
    header.ensurePolished()
    unit = table.fontMetrics().horizontalAdvance("0")
    for place, width in enumerate(widths):
        table.setColumnWidth(place, max(width * unit + 2 * PADDING, header.sectionSizeHint(place)))
