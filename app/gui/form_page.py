"""The frame that pages with a form share: the form's panel at the left, the rest beside it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget


def lay_out(page: QWidget, panel: QWidget, beside: Sequence[QWidget]) -> None:
    """Lays out a page: the panel, and what stands beside it; the last takes the room left."""
    row = QHBoxLayout(page)
    row.setContentsMargins(10, 10, 10, 10)
    row.setSpacing(10)
    row.addWidget(panel)
    right = QVBoxLayout()
    right.setSpacing(8)
    for widget in beside:
        right.addWidget(widget, int(widget is beside[-1]))
    row.addLayout(right, 1)


def form_panel(spacing: int) -> tuple[QFrame, QVBoxLayout]:
    """An empty panel as wide as a form, and the column to fill."""
    panel = QFrame()
    panel.setObjectName("panel")
    panel.setFixedWidth(23 * panel.fontMetrics().averageCharWidth() * 2)
    column = QVBoxLayout(panel)
    column.setContentsMargins(0, 0, 0, 8)
    column.setSpacing(spacing)
    return panel, column
