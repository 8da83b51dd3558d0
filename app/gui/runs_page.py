"""The page of kept runs: search, list, what is chosen, and runs side by side."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.gui.choice import Choice
from app.gui.colours import Colours
from app.gui.comparison_view import ComparisonView
from app.gui.elided import Elided
from app.gui.form_page import characters
from app.gui.plain import label, scaled_font, visible
from app.gui.runs_side import RunsSide
from app.gui.runs_table import RunsTable
from app.gui.strips import Notice
from app.history import Comparison, Entry

BUTTONS = ("open_run", "run_again", "compare_runs", "export_runs", "import_runs", "delete_runs")
"""The actions that have a button on the page."""

EMPTY = "No run has been kept yet.\nEvery run of the playground is, but for private ones."
NOT_FOUND = "No run holds all these words.\nClear the search to see the others."


class RunsPage(QWidget):
    """Lays out the page; what is done with runs is done elsewhere."""

    asked = Signal()
    """Other runs are looked for than before."""

    def __init__(self, actions: dict[str, QAction], colours: Colours) -> None:
        super().__init__()
        self.search = QLineEdit()
        self.search.setPlaceholderText("Search: words of prompt, text, pair, method, note, tags")
        self.search.setAccessibleName("Search")
        self.search.setClearButtonEnabled(True)
        self.tag = Choice([("All tags", "")])
        self.tag.setAccessibleName("Tag")
        self.number = Elided(tone="muted")
        scaled_font(self.number, 0.92)
        self.notice = Notice()
        self.table, self.side = RunsTable(), RunsSide()
        self.comparison = ComparisonView(colours)
        self.empty = label(tone="muted", wrap=True)
        """Why there is none to list."""
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._actions = actions
        self._list, self._stack = QStackedWidget(), QStackedWidget()
        self._lay_out()
        self.search.textChanged.connect(self.asked)
        self.tag.edited.connect(self.asked)
        self.table.chosen.connect(lambda: self.side.show_entries(self.table.entries))
        self.comparison.left.connect(self.show_list)

    def show_entries(self, entries: Sequence[Entry], *, of: int, tags: Sequence[str]) -> None:
        """Shows the runs that a search has found, the number of all it found, and all tags."""
        self.tag.offer([("All tags", ""), *((visible(tag), tag) for tag in tags)])
        self.table.show_entries(entries)
        self.number.setText(_number(len(entries), of))
        asked = self.search.text().strip() or self.tag.get()
        self.empty.setText(NOT_FOUND if asked else EMPTY)
        self._list.setCurrentWidget(self.table if entries else self.empty)

    def show_comparison(self, comparison: Comparison) -> None:
        """Shows runs side by side, in the place of the list."""
        self.comparison.show_comparison(comparison)
        self._stack.setCurrentIndex(1)
        self.side.hide()
        self.comparison.table.setFocus()

    def show_list(self) -> None:
        """Shows the list again."""
        self._stack.setCurrentIndex(0)
        self.side.show()
        self.table.setFocus()

    def take_keyboard(self) -> None:
        """Gives the keyboard to what is shown."""
        listed = self.search if self._list.currentWidget() is self.empty else self.table
        shown = listed if self._stack.currentIndex() == 0 else self.comparison.table
        shown.setFocus()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self.search, 3)
        head.addWidget(self.tag)
        head.addWidget(self.number)
        listed = QWidget()
        column = QVBoxLayout(listed)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(head)
        self._list.addWidget(self.table)
        self._list.addWidget(self.empty)
        column.addWidget(self._list, 1)
        column.addLayout(self._buttons())
        self._stack.addWidget(listed)
        self._stack.addWidget(self.comparison)
        self.side.setFixedWidth(characters(42, self.side))
        row = QHBoxLayout()
        row.setSpacing(10)
        row.addWidget(self._stack, 1)
        row.addWidget(self.side)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(10, 10, 10, 10)
        whole.setSpacing(8)
        whole.addWidget(self.notice)
        whole.addLayout(row, 1)

    def _buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(6)
        for name in BUTTONS:
            button = QToolButton()
            button.setDefaultAction(self._actions[name])
            row.addWidget(button)
        row.addStretch()
        return row


def _number(shown: int, of: int) -> str:
    """How many runs there are."""
    if shown < of:
        return f"The latest {shown} of {of} runs; search to see others"
    return f"{of} run{'' if of == 1 else 's'}"
