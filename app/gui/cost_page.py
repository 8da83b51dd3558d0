"""Where the time goes and what that means: costs of passes, a loop's time, and what was found."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.appraisal.findings import findings
from app.appraisal.time_split import time_split
from app.appraisal.waits import DEFINITION, waits
from app.gui.charts.costs import CostsChart
from app.gui.colours import Colours
from app.gui.rows_panel import PanelRow, RowsPanel
from app.gui.series import RunSeries
from app.run.figures import decimal
from app.run.record import RunRecord

_SPLIT = "Decode seconds / loops, on the lane's own clock; the median of repetitions."


class CostPage(QWidget):
    """A chart and two small tables side by side."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.chart = CostsChart(colours)
        self.time = RowsPanel("Milliseconds", numbers=True)
        self.found = RowsPanel("Does it pay?", numbers=False)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.chart, 3)
        row.addWidget(self.time, 5)
        row.addWidget(self.found, 5)
        self.show_record(None, RunSeries())

    def show_record(self, record: RunRecord | None, series: RunSeries) -> None:
        """Shows what a record says so far; what was found, once it has ended."""
        self.chart.show_series(series, record)
        self.time.show_rows(time_rows(record) if record else [])
        ended = record is not None and record.outcome != "running"
        self.found.show_rows(found_rows(record) if record is not None and ended else [])


def time_rows(record: RunRecord) -> list[PanelRow]:
    """A loop's time by phase, then how long one waits for text; a column for each lane."""
    lanes = tuple(lane.name for lane in record.lanes)
    rows = [PanelRow(("a loop", *lanes), _SPLIT)]
    rows += [
        PanelRow((row.label, *map(decimal, row.milliseconds)), _SPLIT) for row in time_split(record)
    ]
    return rows + _wait_rows(record)


def found_rows(record: RunRecord) -> list[PanelRow]:
    """Everything that was found but the verdict, which stands above."""
    return [PanelRow((one.label, one.value), one.definition) for one in findings(record)[1:]]


def _wait_rows(record: RunRecord) -> list[PanelRow]:
    """p50, p90 and p95 of each kind of wait, in one cell a lane."""
    by_label: dict[str, list[str]] = {}
    for row in waits(record):
        told = " / ".join(decimal(value, 0) for value in row.milliseconds)
        by_label.setdefault(f"{row.label}, p50/90/95", []).append(told)
    return [PanelRow((label, *cells), DEFINITION) for label, cells in by_label.items()]
