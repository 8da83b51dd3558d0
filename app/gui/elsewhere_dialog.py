"""A set-up for other programs: what to run there, to be copied, and what is not the same there."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.elsewhere.setup import Recipe
from app.gui.choice import Choice
from app.gui.plain import label, shown

_NOTHING = "There is nothing of the kind there."


class ElsewhereDialog(QDialog):
    """One program at a time; the window stays usable beside it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Use elsewhere")
        self.resize(680, 460)
        self._recipes: dict[str, Recipe] = {}
        self.about = label(wrap=True, tone="muted")
        self.programs = Choice()
        self.programs.setAccessibleName("Program")
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setAccessibleName("What to run there")
        self.text.setPlaceholderText(_NOTHING)
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.notes = label(wrap=True)
        self.notes.setAccessibleName("What is not the same there")
        self.copy = QPushButton("&Copy")
        close = QPushButton("Close")
        self.programs.edited.connect(self._show)
        self.copy.clicked.connect(self._copy)
        close.clicked.connect(self.close)
        buttons = QHBoxLayout()
        buttons.addStretch()
        buttons.addWidget(self.copy)
        buttons.addWidget(close)
        column = QVBoxLayout(self)
        column.setSpacing(8)
        for part in (self.about, self.programs):
            column.addWidget(part)
        column.addWidget(self.text, 1)
        column.addWidget(self.notes)
        column.addLayout(buttons)

    def show_recipes(self, about: str, recipes: Sequence[Recipe]) -> None:
        """Shows these, and whose set-up they are; the chosen program stays chosen."""
        self.about.setText(about)
        self._recipes = {one.program: one for one in recipes}
        self.programs.offer(
            (f"{name} ({one.release})", name) for name, one in self._recipes.items()
        )
        self._show()
        self.show()
        self.raise_()
        self.activateWindow()
        self.programs.setFocus()

    def _show(self) -> None:
        one = self._recipes[self.programs.get()]
        self.text.setPlainText(shown(one.text))
        self.notes.setText("\n".join(f"– {line}" for line in map(shown, one.not_carried)))
        self.copy.setEnabled(bool(one.text))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._recipes[self.programs.get()].text)
