"""The card that tells how a token came to be, beside the token."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.gui.colours import Colours
from app.gui.lane_spans import Span
from app.gui.plain import label, scaled_font
from app.gui.token_formats import dress_label
from app.gui.token_words import MOST_CANDIDATES, Facts, facts_of


class TokenCard(QFrame):
    """Lies above the page; takes neither the keyboard nor the pointer."""

    def __init__(self, colours: Colours, parent: QWidget) -> None:
        super().__init__(parent)
        self._page = parent
        self.setObjectName("card")
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()
        self._colours = colours
        self.text, self.status = label(), label()
        self.lines = label()
        self._heads = [label(name, tone="muted") for name in ("target p", "draft q", "residual")]
        self._cells = [[label() for _ in range(MOST_CANDIDATES)] for _ in self._heads]
        self._table = QWidget()
        scaled_font(self.text, 1.1, bold=True)
        for small in (self.lines, *self._heads, *(cell for row in self._cells for cell in row)):
            scaled_font(small, 0.92)
        self._lay_out()

    def set_colours(self, colours: Colours) -> None:
        """Takes on another scheme."""
        self._colours = colours

    def show_span(self, span: Span | None, box: QRect) -> None:
        """Shows the card of these tokens below this place (of the screen); None hides it."""
        if span is None:
            self.hide()
            return
        self._fill(facts_of(span), span)
        self.adjustSize()
        self.move(self._place(box))
        self.raise_()
        self.show()

    def _fill(self, facts: Facts, span: Span) -> None:
        self.text.setText(facts.title)
        self.status.setVisible(bool(span.tokens))
        if span.tokens:
            self.status.setText(f" {facts.status} ")
            dress_label(self.status, span.tokens[-1].token.status, self._colours)
        self.lines.setText("\n".join(facts.lines))
        self._table.setVisible(any(facts.candidates))
        for head, cells, column in zip(self._heads, self._cells, facts.candidates, strict=True):
            _fill_column(head, cells, column)
        name = ", ".join(filter(None, (facts.title, facts.status)))
        self.setAccessibleName(f"{name}. {'. '.join(facts.lines)}")

    def _place(self, box: QRect) -> QPoint:
        """Below the token, or above it where the page ends; never past its sides."""
        page = self._page
        corner = page.mapFromGlobal(box.topLeft())
        x = max(4, min(corner.x(), page.width() - self.width() - 4))
        y = corner.y() + box.height() + 8
        if y + self.height() > page.height():
            y = max(4, corner.y() - self.height() - 8)
        return QPoint(x, y)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self.text)
        head.addSpacing(12)
        head.addStretch()
        head.addWidget(self.status)
        grid = QGridLayout(self._table)
        grid.setContentsMargins(0, 4, 0, 0)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(1)
        for place, (title, cells) in enumerate(zip(self._heads, self._cells, strict=True)):
            grid.addWidget(title, 0, place)
            for line, cell in enumerate(cells, 1):
                grid.addWidget(cell, line, place)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 8, 10, 8)
        column.setSpacing(4)
        column.addLayout(head)
        column.addWidget(self.lines)
        column.addWidget(self._table)


def _fill_column(head: QLabel, cells: list[QLabel], column: list[str]) -> None:
    """Shows a column of candidates, or hides it whole."""
    head.setVisible(bool(column))
    for place, cell in enumerate(cells):
        cell.setVisible(place < len(column))
        cell.setText(column[place] if place < len(column) else "")
