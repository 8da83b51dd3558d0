"""The charts of the page: one file each, one line in the table."""

from __future__ import annotations

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from app.gui.charts.acceptance import AcceptanceChart
from app.gui.charts.chart import Chart
from app.gui.charts.positions import PositionsChart
from app.gui.charts.speed import SpeedChart
from app.gui.charts.tokens_per_loop import TokensPerLoopChart
from app.gui.colours import Colours
from app.gui.series import RunSeries
from app.run.record import RunRecord

CHARTS: tuple[type[Chart], ...] = (
    AcceptanceChart,
    TokensPerLoopChart,
    SpeedChart,
    PositionsChart,
)
"""Every chart, from left to right."""


class ChartRow(QWidget):
    """All charts side by side, drawn from one set of series."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._series = RunSeries()
        self._record: RunRecord | None = None
        self.charts = [kind(colours) for kind in CHARTS]
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        for chart in self.charts:
            row.addWidget(chart, 1)
        self.setMinimumHeight(8 * self.fontMetrics().height())
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)

    def show_record(self, record: RunRecord | None) -> None:
        """Draws a record as far as it has come; nothing while the row is hidden."""
        self._record = record
        if not self.isVisible():
            return
        self._series.read(record)
        for chart in self.charts:
            chart.show_series(self._series, record)

    def set_colours(self, colours: Colours) -> None:
        """Takes on another scheme."""
        for chart in self.charts:
            chart.set_colours(colours)

    def showEvent(self, event: QShowEvent) -> None:
        """Catches up with what came while the row was hidden."""
        super().showEvent(event)
        self.show_record(self._record)
