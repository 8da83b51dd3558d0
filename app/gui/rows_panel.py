"""A small table on a panel: words at the left, numbers or words beside them, meanings on hover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QLabel,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.gui.elided import Elided
from app.gui.plain import label, scaled_font, tip


@dataclass(frozen=True)
class PanelRow:
    """One line: its cells, the first of which names it, and what it means."""

    cells: tuple[str, ...]
    meaning: str = ""


class RowsPanel(QFrame):
    """Rows below a title; labels are made once and filled anew."""

    def __init__(self, title: str, *, numbers: bool, parent: QWidget | None = None) -> None:
        """With `numbers` all cells but the first stand at the right."""
        super().__init__(parent)
        self.setObjectName("panel")
        self.setAccessibleName(title)
        self._numbers = numbers
        self._below = 0
        """The line below the rows, which takes the room that is left."""
        self._cells: dict[tuple[int, int], QLabel] = {}
        head = Elided(title.upper(), tone="muted")
        scaled_font(head, 0.85)
        body = QWidget()
        body.setObjectName("form")  # which the style sheet leaves without a ground of its own
        self._grid = QGridLayout(body)
        self._grid.setContentsMargins(0, 0, 6, 0)
        self._grid.setHorizontalSpacing(14)
        self._grid.setVerticalSpacing(2)
        self._grid.setColumnStretch(0 if numbers else 1, 1)
        scroll = QScrollArea()
        scroll.setWidget(body)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 7, 4, 5)
        column.setSpacing(4)
        column.addWidget(head)
        column.addWidget(scroll, 1)

    def show_rows(self, rows: Sequence[PanelRow]) -> None:
        """Shows these rows instead of those before."""
        shown = set()
        for line, row in enumerate(rows):
            for place, text in enumerate(row.cells):
                cell = self._cell(line, place)
                cell.setText(text)
                cell.setToolTip(tip("\n".join(filter(None, (": ".join(row.cells), row.meaning)))))
                shown.add((line, place))
        for where, cell in self._cells.items():
            cell.setVisible(where in shown)
        self._grid.setRowStretch(self._below, 0)
        self._below = len(rows)
        self._grid.setRowStretch(self._below, 1)

    def words(self) -> list[str]:
        """What stands in the cells that are shown, line by line."""
        return [cell.text() for _, cell in sorted(self._cells.items()) if not cell.isHidden()]

    def _cell(self, line: int, place: int) -> QLabel:
        """The label at this place, made when it is first needed."""
        found = self._cells.get((line, place))
        if found is None:
            found = self._cells[line, place] = self._made(place)
            side = Qt.AlignmentFlag.AlignRight if self._numbers and place else Qt.AlignmentFlag(0)
            self._grid.addWidget(found, line, place, side)
        return found

    def _made(self, place: int) -> QLabel:
        """A label for this column. Names beside numbers give way and end in an ellipsis; words
        are wrapped.
        """
        tone = "" if place else "muted"
        made: QLabel
        if not self._numbers:
            made = label(tone=tone, wrap=True)
            made.setAlignment(Qt.AlignmentFlag.AlignTop)
        elif place:
            made = label(tone=tone)
        else:
            made = Elided(tone=tone)
            made.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        scaled_font(made, 0.88)
        return made
