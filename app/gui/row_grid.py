"""Rows of a form below each other: names on the left, fields on the right."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtWidgets import QGridLayout

from app.gui.fields import Row
from app.gui.plain import dress_heading


class RowGrid(QGridLayout):
    """A part of a form."""

    def __init__(self) -> None:
        super().__init__()
        self.setHorizontalSpacing(10)
        self.setVerticalSpacing(4)
        self.setColumnStretch(1, 1)

    def add(self, row: Row, *, wide: bool = False) -> None:
        """Adds a row below the others; a wide one has its field below its name, which becomes a
        heading.
        """
        place = self.rowCount()
        if not wide:
            self.addWidget(row.name, place, 0)
            self.addWidget(row.field, place, 1)
            if row.said is not None:
                self.addWidget(row.said, place + 1, 0, 1, 2)
            return
        dress_heading(row.name)
        row.name.setContentsMargins(0, 6, 0, 1)
        self.addWidget(row.name, place, 0, 1, 2)
        self.addWidget(row.field, place + 1, 0, 1, 2)


def align(grids: Iterable[RowGrid], rows: Iterable[Row]) -> None:
    """Gives the names of all grids, which hold these rows, one width."""
    width = max(row.name.sizeHint().width() for row in rows)
    for grid in grids:
        grid.setColumnMinimumWidth(0, width)
