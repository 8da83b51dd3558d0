"""The page where a draft head is taught: settings on the left; numbers and curve on the right."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.gui.charts.learning import LearningChart
from app.gui.colours import Colours
from app.gui.plain import label, scaled_font
from app.gui.strips import Notice, ProgressStrip
from app.gui.train_form import TrainForm
from app.gui.train_tiles import TrainTiles
from app.library.catalogue import Catalogue


class TrainPage(QWidget):
    """Lays out the page; what is done with it is done elsewhere."""

    def __init__(self, catalogue: Catalogue, colours: Colours, folder: Path) -> None:
        super().__init__()
        self.form = TrainForm(catalogue, folder)
        self.start, self.stop = QPushButton("Start training"), QPushButton("Stop")
        self.start.setObjectName("run")
        self.note = label(tone="muted", wrap=True)
        """Why something cannot be done now."""
        scaled_font(self.note, 0.88)
        self.tiles = TrainTiles()
        self.progress, self.notice = ProgressStrip(), Notice()
        self.chart = LearningChart(colours)
        self.chart.show_curve(())
        self._lay_out()

    def take_keyboard(self) -> None:
        """Gives the keyboard to the first thing that can be done."""
        first = self.form.target if self.form.target.isEnabled() else self.stop
        first.setFocus()

    def _lay_out(self) -> None:
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 10, 10, 10)
        row.setSpacing(10)
        row.addWidget(self._left())
        right = QVBoxLayout()
        right.setSpacing(8)
        right.addWidget(self.tiles)
        right.addWidget(self.progress)
        right.addWidget(self.notice)
        right.addWidget(self.chart, 1)
        row.addLayout(right, 1)

    def _left(self) -> QWidget:
        panel = QFrame()
        panel.setObjectName("panel")
        panel.setFixedWidth(23 * panel.fontMetrics().averageCharWidth() * 2)
        scroll = QScrollArea()
        scroll.setWidget(self.form)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        buttons = QHBoxLayout()
        buttons.addWidget(self.start, 1)
        buttons.addWidget(self.stop)
        below = QVBoxLayout()
        below.setContentsMargins(12, 0, 12, 0)
        below.addWidget(self.note)
        below.addLayout(buttons)
        column = QVBoxLayout(panel)
        column.setContentsMargins(0, 0, 0, 8)
        column.setSpacing(6)
        column.addWidget(scroll, 1)
        column.addLayout(below)
        return panel
