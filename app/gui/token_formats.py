"""How tokens are written: the colours and cues of their status, as Qt's formats and fonts."""

from __future__ import annotations

from PySide6.QtGui import QColor, QTextCharFormat
from PySide6.QtWidgets import QLabel

from app.gui.colours import CUES, Colours
from app.run.events import Status


def token_formats(colours: Colours) -> dict[Status, QTextCharFormat]:
    """How a token of each status is written."""
    return {status: _token_format(colours, status) for status in CUES}


def earlier_format(colours: Colours) -> QTextCharFormat:
    """How text is written that an earlier run wrote."""
    made = QTextCharFormat()
    made.setForeground(QColor(colours.muted))
    return made


def _token_format(colours: Colours, status: Status) -> QTextCharFormat:
    tint, cue = colours.tint(status), CUES[status]
    made = QTextCharFormat()
    made.setForeground(QColor(tint.text))
    if tint.ground != colours.panel:
        made.setBackground(QColor(tint.ground))
    made.setFontUnderline(cue.underline)
    made.setFontOverline(cue.overline)
    made.setFontStrikeOut(cue.strike)
    return made


def dress_label(label: QLabel, status: Status, colours: Colours) -> None:
    """Writes a label as tokens of this status are written."""
    tint, cue, font = colours.tint(status), CUES[status], label.font()
    ground = "transparent" if tint.ground == colours.panel else tint.ground
    label.setStyleSheet(f"color: {tint.text}; background: {ground}; border-radius: 2px;")
    font.setUnderline(cue.underline)
    font.setOverline(cue.overline)
    font.setStrikeOut(cue.strike)
    label.setFont(font)
