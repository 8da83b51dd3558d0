"""A field for a prompt that gives back exactly the characters that were put in."""

from __future__ import annotations

from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QPlainTextEdit

from app.gui.plain import whole_unicode

_BLOCK_END = "\u2029"
_PADDING = 3


class PromptField(QPlainTextEdit):
    """Many lines of plain text. Tab moves on; Shift+Enter is a plain line end."""

    def __init__(self, name: str, *, placeholder: str = "") -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setPlaceholderText(placeholder)
        self.setTabChangesFocus(True)

    def set_lines(self, lines: int) -> None:
        """Makes the field as high as so many lines."""
        around = 2 * (self.frameWidth() + self.document().documentMargin() + _PADDING)
        self.setFixedHeight(round(lines * self.fontMetrics().lineSpacing() + around))
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def text(self) -> str:
        """The characters put in; `toPlainText` would turn a no-break space into a space."""
        return whole_unicode(self.document().toRawText().replace(_BLOCK_END, "\n"))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Writes an ordinary line end for Shift+Enter, where Qt would write U+2028."""
        returns = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        shift = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if event.key() in returns and shift:
            self.textCursor().insertBlock()
            return
        super().keyPressEvent(event)

    def createMimeDataFromSelection(self) -> QMimeData:
        """Copies the characters as they are."""
        cursor = self.textCursor()
        raw = self.document().toRawText().encode("utf-16-le", "surrogatepass")
        part = raw[2 * cursor.selectionStart() : 2 * cursor.selectionEnd()]
        data = QMimeData()
        text = part.decode("utf-16-le", "surrogatepass").replace(_BLOCK_END, "\n")
        data.setText(whole_unicode(text))
        return data
