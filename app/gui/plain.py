"""Text that is shown as it is: nothing that a model or a file says is read as markup."""

from __future__ import annotations

import html
import re

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"} | {
    0x7F: 0x2421
}

_BREAK = "\u200b"
_LONG_WORD = re.compile(r"\S{25,}")
_PIECE = re.compile(r"[^_/\\.=-]{0,24}[_/\\.=-]++(?=\S)|[^_/\\.=-]{24}(?=\S)")
"""Where a line may end behind: letters with marks behind them, or many letters without."""


def label(
    text: str = "", *, tone: str = "", wrap: bool = False, parent: QWidget | None = None
) -> QLabel:
    """A label that never reads its text as markup."""
    made = _Wrapping() if wrap else QLabel()
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setText(text)
    if tone:
        made.setProperty("tone", tone)
    return made


class _Wrapping(QLabel):
    """Wraps within long words too, as names and paths are, unless it can be copied from."""

    def __init__(self) -> None:
        super().__init__()
        self._text = ""
        self.setWordWrap(True)

    def setText(self, text: str) -> None:
        """Shows this text, which is its accessible name too: that has no breaks."""
        self._text = text
        self.setAccessibleName(text)
        self._break()

    def setTextInteractionFlags(self, flags: Qt.TextInteractionFlag) -> None:
        """Lets the text be selected, or no more."""
        super().setTextInteractionFlags(flags)
        self._break()

    def text(self) -> str:
        """The text as it was given."""
        return self._text

    def _break(self) -> None:
        copied = self.textInteractionFlags() & _SELECTABLE
        super().setText(self._text if copied else _breakable(self._text))


_SELECTABLE = (
    Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
)


def tip(text: str) -> str:
    """The text as a tooltip shows it literally; left alone, Qt would guess what is markup."""
    lines = html.escape(text).replace("\n", "<br>")
    return f"<qt>{lines}</qt>"


def _breakable(text: str) -> str:
    """The text with places in long words at which a line may end."""
    return _LONG_WORD.sub(lambda word: _PIECE.sub(rf"\g<0>{_BREAK}", word[0]), text)


def visible(text: str) -> str:
    """The text with pictures for control characters, as a line of a card shows it."""
    return text.translate(_PICTURES).replace("\n", "↵").replace("\t", "⇥")


def shown(text: str) -> str:
    """The text as a lane shows it: line ends and tabs act, other controls are pictured."""
    return text.translate(_LANE_PICTURES)


_LANE_PICTURES = {code: picture for code, picture in _PICTURES.items() if code != 0x0D}


def whole_unicode(text: str) -> str:
    """The text without halves of characters, which nothing can encode."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def scaled_font(widget: QWidget, factor: float, *, bold: bool = False) -> None:
    """Sets a widget's font to a multiple of the application's, whatever the person chose there."""
    font = widget.font()
    font.setPointSizeF(font.pointSizeF() * factor)
    font.setBold(bold)
    widget.setFont(font)


def set_tone(widget: QWidget, tone: str) -> None:
    """Gives a widget another tone of the style sheet."""
    widget.setProperty("tone", tone)
    widget.style().unpolish(widget)
    widget.style().polish(widget)


def section_label(title: str) -> QLabel:
    """The heading of a section."""
    made = label(title)
    dress_heading(made)
    return made


def dress_heading(heading: QLabel) -> None:
    """Makes a heading of a label."""
    title = heading.text()
    heading.setText(title.upper())
    heading.setAccessibleName(title)
    heading.setProperty("tone", "muted")
    scaled_font(heading, 0.85)
