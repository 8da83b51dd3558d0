"""The list of models on the page; the keyboard does all that the pointer does."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QItemSelectionModel, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QTableView

from app.gui.colours import Colours
from app.gui.models_model import COLUMNS, STATE, WIDENED, ModelsModel, Which, arranged
from app.gui.runs_table import dress_table, set_widths, widen
from app.library.inventory import Listed


class ModelsTable(QTableView):
    """One row is chosen; a click on a heading sorts, and a second one the other way round."""

    chosen = Signal()
    """Another row is chosen than before, or it says something else."""

    def __init__(self, colours: Colours) -> None:
        super().__init__()
        self.setAccessibleName("Models")
        self._all: tuple[Listed, ...] = ()
        self._words = ""
        self._which: Which = "all"
        self._model = ModelsModel(colours, self)
        self.setModel(self._model)
        dress_table(self)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        header = self.horizontalHeader()
        header.setSectionsClickable(True)
        header.setSortIndicatorShown(True)
        header.setSortIndicator(STATE, Qt.SortOrder.AscendingOrder)
        header.sortIndicatorChanged.connect(lambda *_: self._arrange())
        set_widths(self, [column.width for column in COLUMNS])
        self._widths = [self.columnWidth(place) for place in range(len(COLUMNS))]
        self.selectionModel().selectionChanged.connect(lambda *_: self.chosen.emit())

    @property
    def row(self) -> Listed | None:
        """The row that is chosen."""
        places = [index.row() for index in self.selectionModel().selectedRows()]
        return self._model.rows[places[0]] if places else None

    @property
    def rows(self) -> tuple[Listed, ...]:
        """The rows that are shown, from top to bottom."""
        return self._model.rows

    @property
    def number(self) -> int:
        """How many rows there are, shown or not."""
        return len(self._all)

    @property
    def faults(self) -> int:
        """How many of them are faulty entries of a catalogue file."""
        return sum(row.fault is not None for row in self._all)

    def show_rows(self, rows: Sequence[Listed]) -> None:
        """Shows these models; the one that was chosen stays so, else the first is."""
        self._all = tuple(rows)
        self._arrange()

    def narrow(self, words: str, which: Which) -> None:
        """Shows only the models that hold all these words."""
        self._words, self._which = words, which
        self._arrange()

    def choose(self, key: str) -> None:
        """Chooses the row with this key, if it is shown."""
        places = [place for place, row in enumerate(self.rows) if row.key == key]
        if places:
            flags = QItemSelectionModel.SelectionFlag
            where = self._model.index(places[0], 0)
            self.selectionModel().setCurrentIndex(where, flags.ClearAndSelect | flags.Rows)
            self.scrollTo(where)

    def set_colours(self, colours: Colours) -> None:
        """Takes on another scheme."""
        self._model.colours = colours
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Shares out the room anew."""
        super().resizeEvent(event)
        widen(self, self._widths, WIDENED)

    def _arrange(self) -> None:
        before, place = self.row, max(self.currentIndex().row(), 0)
        header = self.horizontalHeader()
        falling = header.sortIndicatorOrder() == Qt.SortOrder.DescendingOrder
        column = header.sortIndicatorSection()
        rows = arranged(
            self._all, words=self._words, which=self._which, column=column, falling=falling
        )
        self.selectionModel().blockSignals(True)
        self._model.show_rows(rows)
        kept = _again(before, rows) or (rows[min(place, len(rows) - 1)] if rows else None)
        if kept is not None:
            self.choose(kept.key)
        self.selectionModel().blockSignals(False)
        widen(self, self._widths, WIDENED)
        self.viewport().update()
        self.chosen.emit()


def _again(before: Listed | None, rows: Sequence[Listed]) -> Listed | None:
    """The row that was chosen, or what it has become: one that was found may be offered by now."""
    if before is None:
        return None
    same = (row for row in rows if row.key == before.key)
    place = before.path
    there = (row for row in rows if place is not None and row.path == place and not row.fault)
    return next(same, None) or next(there, None)
