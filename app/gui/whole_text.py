"""Tells the whole of a text on hover that has no room where it stands."""

from __future__ import annotations

import html

from PySide6.QtCore import QPoint
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


def tell_whole(widget: QWidget, text: str, at: QPoint) -> None:
    """Shows that tooltip at this place of the screen."""
    QToolTip.showText(at, whole_text(widget, text), widget)


def _told(widget: QWidget | None) -> str:
    while widget is not None and not widget.toolTip():
        widget = widget.parentWidget()
    return widget.toolTip() if widget else ""
