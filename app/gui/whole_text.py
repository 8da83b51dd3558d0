"""Tells the whole of a text on hover that has no room where it stands."""

from __future__ import annotations

import html

from PySide6.QtCore import QEvent
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QToolTip, QWidget

from app.gui.plain import tip

_BEGIN, _END = "<qt>", "</qt>"


def whole_text(widget: QWidget, text: str) -> str:
    """A tooltip: the text, above what the widget tells on hover, or else what holds it."""
    told = _told(widget)
    if html.escape(text) in told:
        return told
    below = told.removeprefix(_BEGIN).removesuffix(_END)
    return f"{tip(text).removesuffix(_END)}<br>{below}{_END}" if below else tip(text)


def tells_whole(widget: QWidget, event: QEvent, text: str, *, room: int) -> bool:
    """Shows that tooltip if the event asks for one, and the text needs more pixels than its room;
    whether it did.
    """
    if not isinstance(event, QHelpEvent) or widget.fontMetrics().horizontalAdvance(text) <= room:
        return False
    QToolTip.showText(event.globalPos(), whole_text(widget, text), widget)
    return True


def _told(widget: QWidget | None) -> str:
    while widget is not None and not widget.toolTip():
        widget = widget.parentWidget()
    return widget.toolTip() if widget else ""
