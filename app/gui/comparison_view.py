"""Runs side by side; what was not held equal is marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.gui.colours import Colours
from app.gui.plain import label, tip, visible
from app.gui.runs_model import ROOT, Index, alignment, heading
from app.gui.runs_table import dress_table
from app.history import Comparison, ComparisonRow

_ORDER = ("Run", "Figures", "Settings", "Machine")
"""Figures are what one looks for, so they come first."""

_LONGEST = 160
_LABEL_WIDTH, _CELL_WIDTH = 38, 34
_MOST_STRETCHED = 4
"""Columns of more runs than this keep their width, and are scrolled to."""


class ComparisonModel(QAbstractTableModel):
    """One row a thing, one column a run."""

    def __init__(self, colours: Colours, parent: QObject) -> None:
        super().__init__(parent)
        self.colours = colours
        self.runs: tuple[str, ...] = ()
        self.rows: tuple[ComparisonRow, ...] = ()

    def show_rows(self, runs: tuple[str, ...], rows: Sequence[ComparisonRow]) -> None:
        """Shows these rows instead of those before."""
        self.beginResetModel()
        self.runs = runs
        self.rows = tuple(sorted(rows, key=lambda row: _ORDER.index(row.group)))
        self.endResetModel()

    def rowCount(self, parent: Index = ROOT) -> int:
        """A row a thing."""
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = ROOT) -> int:
        """The name, then a column a run."""
        return 0 if parent.isValid() else 1 + len(self.runs)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """A name or a cell; the whole of it, and what it means, on hover."""
        row, marked = self.rows[index.row()], unequal_setting(self.rows[index.row()])
        if role == Qt.ItemDataRole.DisplayRole:
            return _text(row, index.column(), longest=_LONGEST)
        if role == Qt.ItemDataRole.ToolTipRole:
            whole = _text(row, index.column(), longest=10 * _LONGEST)
            return tip("\n".join(filter(None, (whole, row.definition))))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(bool(row.values) and index.column() > 0)
        if role == Qt.ItemDataRole.ForegroundRole and marked:
            return QColor(self.colours.corrected.text)
        if role == Qt.ItemDataRole.FontRole and (marked or row.group == "Figures"):
            font = QFont()
            font.setBold(True)
            return font
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """The runs' names."""
        title = f"Run {visible(self.runs[section - 1])}" if section else ""
        return heading(orientation, role, title=title)


class ComparisonView(QWidget):
    """The table, one sentence on what was not held equal, and the way back."""

    left = Signal()

    def __init__(self, colours: Colours) -> None:
        super().__init__()
        self._comparison: Comparison | None = None
        self.sentence = label(wrap=True)
        self.differences = QCheckBox("Differences only")
        self.differences.toggled.connect(self._refresh)
        self.back = QPushButton("Back to the list")
        self.back.clicked.connect(self.left)
        self.model = ComparisonModel(colours, self)
        self.table = QTableView()
        self.table.setAccessibleName("Runs side by side")
        self.table.setModel(self.model)
        dress_table(self.table)
        self._lay_out()

    def show_comparison(self, comparison: Comparison) -> None:
        """Shows runs side by side."""
        self._comparison = comparison
        unequal = comparison.unequal_settings
        self.sentence.setText(
            f"≠ Not held equal: {', '.join(unequal)}."
            if unequal
            else "All settings and the machine are equal."
        )
        self._refresh()

    def set_colours(self, colours: Colours) -> None:
        """Takes on another scheme."""
        self.model.colours = colours
        self.table.viewport().update()

    def _refresh(self) -> None:
        """Shows all rows, or those that differ."""
        if self._comparison is None:
            return
        only = self.differences.isChecked()
        rows = [row for row in self._comparison.rows if any(row.cells)]
        rows = [row for row in rows if not (only and row.equal)]
        self.model.show_rows(self._comparison.runs, rows)
        self._set_widths()

    def _set_widths(self) -> None:
        """Shares the room among few runs; many get columns that can be read."""
        header, modes = self.table.horizontalHeader(), QHeaderView.ResizeMode
        unit = self.table.fontMetrics().averageCharWidth()
        few = len(self.model.runs) <= _MOST_STRETCHED
        for column in range(self.model.columnCount()):
            header.setSectionResizeMode(
                column, modes.Stretch if few and column else modes.Interactive
            )
            self.table.setColumnWidth(column, (_CELL_WIDTH if column else _LABEL_WIDTH) * unit)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self.sentence, 1)
        head.addWidget(self.differences)
        head.addWidget(self.back)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(head)
        column.addWidget(self.table, 1)


def unequal_setting(row: ComparisonRow) -> bool:
    """Whether this was asked or used, and not held equal."""
    return row.group in ("Settings", "Machine") and not row.equal


def _text(row: ComparisonRow, column: int, *, longest: int) -> str:
    """The name of a row, marked where it was not held equal, or a cell; cut where it is long."""
    if column == 0:
        return f"≠ {row.label}" if unequal_setting(row) else row.label
    text = visible(row.cells[column - 1][: longest + 1])
    return text if len(text) <= longest else text[: longest - 1] + "…"
