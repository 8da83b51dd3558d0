"""The frame that pages with a form share: the form's panel at the left, the rest beside it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

NARROW, WIDE = 49, 53
"""Characters that a form is wide: at least what most fields need, at most what all do."""


def lay_out(page: QWidget, panel: QWidget, beside: Sequence[QWidget]) -> None:
    """Lays out a page: the panel takes a quarter of it, within bounds; of what stands beside it the
    last takes the room left.
    """
    row = QHBoxLayout(page)
    row.setContentsMargins(10, 10, 10, 10)
    row.setSpacing(10)
    row.addWidget(panel, 1)
    right = QVBoxLayout()
    right.setSpacing(8)
    for widget in beside:
        right.addWidget(widget, int(widget is beside[-1]))
    row.addLayout(right, 3)


def form_panel(spacing: int) -> tuple[QFrame, QVBoxLayout]:
    """An empty panel as wide as a form, and the column to fill."""
    panel = QFrame()
    panel.setObjectName("panel")
    panel.setMinimumWidth(characters(NARROW, panel))
    panel.setMaximumWidth(characters(WIDE, panel))
    column = QVBoxLayout(panel)
    column.setContentsMargins(0, 0, 0, 8)
    column.setSpacing(spacing)
    return panel, column


def characters(number: int, widget: QWidget) -> int:
    """The width of so many characters of a widget's font, in pixels."""
    return round(number * QFontMetricsF(widget.font()).averageCharWidth())
