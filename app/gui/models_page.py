"""The page of models: search, list, and what is chosen with all that can be done with it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
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
from app.gui.elided import Elided
from app.gui.form_page import WIDE, characters
from app.gui.models_side import ModelsSide
from app.gui.models_table import ModelsTable
from app.gui.plain import label, scaled_font, tip
from app.gui.strips import Notice, ProgressStrip
from app.library.inventory import Listed

FILTERS = (
    ("All models", "all"),
    ("On this machine", "here"),
    ("Cannot be used", "unusable"),
)

LISTING = "Looking…"
NOT_FOUND = "No model holds all these words.\nClear the search to see the others."
NONE_HERE = (
    "No model is on this machine yet.\nShow all models, choose one and press Fetch; or drop the "
    "folder of a model, or a .gguf file, into this window."
)
ALL_USABLE = "Every model can be used."
NONE = (
    "The catalogue offers no model.\nDrop the folder of a model, or a .gguf file, into this window."
)
DROP = "Folders of models and .gguf files can be dropped anywhere in this window."


class ModelsPage(QWidget):
    """Lays out the page; what is done with models is done elsewhere."""

    def __init__(self, actions: dict[str, QAction], colours: Colours) -> None:
        super().__init__()
        self.search = QLineEdit()
        self.search.setPlaceholderText("Search: words of name, kind, state, path")
        self.search.setToolTip(tip("Models that hold all these words in any column or their path."))
        self.search.setAccessibleName("Search")
        self.search.setClearButtonEnabled(True)
        self.search.setAcceptDrops(False)  # the window takes them
        self.which = Choice(FILTERS)
        self.which.setAccessibleName("Which models")
        self.which.setMinimumContentsLength(max(len(words) for words, _ in FILTERS))
        self.which.setToolTip(tip("Which models are listed."))
        self.number = Elided(tone="muted")
        self.looking, self.fetching, self.notice = ProgressStrip(), ProgressStrip(), Notice()
        self.table, self.side = ModelsTable(colours), ModelsSide(actions)
        self.empty = label(tone="muted", wrap=True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.places = Elided(DROP, tone="muted")
        for small in (self.number, self.places):
            scaled_font(small, 0.92)
        self._stack = QStackedWidget()
        self._lay_out(actions)
        self.number.setText(LISTING)
        self.search.textChanged.connect(self._narrow)
        self.which.edited.connect(self._narrow)
        self.table.chosen.connect(lambda: self.side.show_row(self.table.row))
        self.side.told.connect(self.notice.show_news)

    def show_rows(self, rows: Sequence[Listed]) -> None:
        """Shows these models."""
        self.table.show_rows(rows)
        self._show_number()

    def show_places(self, words: str, whole: str) -> None:
        """Says where models were looked for; the whole of it on hover."""
        self.places.setText(f"{words} {DROP}")
        self.places.setToolTip(tip(whole))

    def choose(self, key: str) -> None:
        """Chooses a model, and shows all of them if it is not among those that are shown."""
        if all(row.key != key for row in self.table.rows):
            self.which.put("all")
            self.search.clear()
        self.table.choose(key)

    def take_keyboard(self) -> None:
        """Gives the keyboard to the list."""
        self.table.setFocus()

    def search_list(self) -> None:
        """Gives the keyboard to the search."""
        self.search.setFocus()
        self.search.selectAll()

    def _narrow(self) -> None:
        self.table.narrow(self.search.text(), self.which.get())
        self._show_number()

    def _show_number(self) -> None:
        """How many models there are, or why there are none and what to do."""
        shown, faults = len(self.table.rows), self.table.faults
        number = self.table.number - faults
        words = f"{number} model{'' if number == 1 else 's'}"
        if faults:
            words += f", {faults} faulty entr{'y' if faults == 1 else 'ies'}"
        all_ = self.table.number
        self.number.setText(words if shown == all_ else f"{shown} of {all_} shown")
        self._stack.setCurrentIndex(0 if shown else 1)
        self.empty.setText(self._why_empty())

    def _why_empty(self) -> str:
        if self.search.text().strip():
            return NOT_FOUND
        whys = {"all": NONE, "here": NONE_HERE, "unusable": ALL_USABLE}
        return whys[self.which.get()]

    def _lay_out(self, actions: dict[str, QAction]) -> None:
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self.search, 3)
        head.addWidget(self.which)
        head.addWidget(self.number)
        for name in ("add_folder", "scan_models"):
            button = QToolButton()
            button.setDefaultAction(actions[name])
            head.addWidget(button)
        self._stack.addWidget(self.table)
        self._stack.addWidget(self.empty)
        left = QVBoxLayout()
        left.setSpacing(8)
        for widget in (self.looking, self.fetching, self.notice, self._stack, self.places):
            left.addWidget(widget, int(widget is self._stack))
        self.side.setFixedWidth(characters(WIDE, self.side))
        row = QHBoxLayout()
        row.setSpacing(10)
        row.addLayout(left, 1)
        row.addWidget(self.side)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(10, 10, 10, 10)
        whole.setSpacing(8)
        whole.addLayout(head)
        whole.addLayout(row, 1)
