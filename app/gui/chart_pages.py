"""The charts below the lanes, in two pages: how the run went, and what its time went into."""

from __future__ import annotations

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QStackedWidget, QToolButton, QWidget

from app.gui.charts import ChartRow
from app.gui.charts.chart import Chart
from app.gui.colours import Colours
from app.gui.cost_page import CostPage
from app.gui.plain import tip
from app.gui.series import RunSeries
from app.run.record import RunRecord

PAGES = (
    ("Course", "How acceptance, tokens per loop and speed went along the run."),
    ("Cost and time", "What passes cost, where the time of a loop goes, and whether it pays."),
)
"""The pages: the word on the button, and what it shows."""


class ChartPages(QStackedWidget):
    """Shows one page; the hidden one catches up when it is chosen."""

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.course, self.cost = ChartRow(colours), CostPage(colours)
        self._series = RunSeries()
        self._record: RunRecord | None = None
        for page in (self.course, self.cost):
            self.addWidget(page)
        self.setSizePolicy(self.course.sizePolicy())
        self.switch = _Switch(self)
        self.currentChanged.connect(lambda: self.show_record(self._record))

    @property
    def charts(self) -> list[Chart]:
        """Every chart of both pages."""
        return [*self.course.charts, self.cost.chart]

    def show_record(self, record: RunRecord | None) -> None:
        """Draws a record as far as it has come, on the page that is seen."""
        self._record = record
        if self.currentWidget() is self.course:
            self.course.show_record(record)
        elif self.cost.isVisible():
            self._series.read(record)
            self.cost.show_record(record, self._series)

    def show_figures(self, record: RunRecord | None) -> None:
        """Renews the figures in the corners of the charts that are seen; what is drawn stays."""
        for chart in self.charts:
            if chart.isVisible():
                chart.show_figure(record)

    def set_colours(self, colours: Colours) -> None:
        """Takes on another scheme."""
        for chart in self.charts:
            chart.set_colours(colours)

    def showEvent(self, event: QShowEvent) -> None:
        """Catches up with what came while no page was seen."""
        super().showEvent(event)
        self.show_record(self._record)


class _Switch(QWidget):
    """A button a page, one of which is down."""

    def __init__(self, pages: ChartPages) -> None:
        super().__init__()
        self.buttons = QButtonGroup(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        for place, (word, meaning) in enumerate(PAGES):
            button = QToolButton()
            button.setObjectName("quiet")
            button.setText(word)
            button.setCheckable(True)
            button.setToolTip(tip(meaning))
            self.buttons.addButton(button, place)
            row.addWidget(button)
        self.buttons.button(0).setChecked(True)
        self.buttons.idClicked.connect(pages.setCurrentIndex)
