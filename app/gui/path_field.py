"""A field for a path: written, or chosen in a dialog."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QToolButton, QWidget

from app.gui.plain import tip

Ask = Callable[[QWidget, str], str | None]
"""Asks a person for a path, from a place; None if for none after all."""


class PathField(QWidget):
    """One line, and a button that opens a dialog."""

    edited = Signal()

    def __init__(self, ask: Ask, *, placeholder: str) -> None:
        super().__init__()
        self._ask = ask
        self._told = ""
        self.line, self.choose = QLineEdit(), QToolButton()
        self.line.setPlaceholderText(placeholder)
        self.line.editingFinished.connect(self._tell)
        self.choose.setText("…")
        self.choose.clicked.connect(self._choose)
        self.setFocusProxy(self.line)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.line, 1)
        row.addWidget(self.choose)

    def get(self) -> Any:
        """The path as text, `~` written out; empty if there is none."""
        text = self.line.text().strip()
        try:
            return str(Path(text).expanduser()) if text else ""
        except RuntimeError:  # there is no such person
            return text

    def put(self, value: Any) -> None:
        """Shows this path."""
        self.line.setText(value)
        self.line.setCursorPosition(len(value))  # where there is no room, the end is what tells
        self.line.setToolTip(tip(value))
        self._told = value

    def setAccessibleName(self, name: str) -> None:
        """Names the line, and the button after it."""
        super().setAccessibleName(name)
        self.line.setAccessibleName(name)
        self.choose.setAccessibleName(f"{name}: choose…")
        self.choose.setToolTip(tip("Choose…"))

    def setAccessibleDescription(self, description: str) -> None:
        """Describes the line."""
        super().setAccessibleDescription(description)
        self.line.setAccessibleDescription(description)

    def _choose(self) -> None:
        path = self._ask(self, self.get())
        if path is not None:
            self.line.setText(path)
            self._tell()

    def _tell(self) -> None:
        """Says once that another path stands here."""
        if self.line.text() != self._told:
            self.put(self.line.text())
            self.edited.emit()
