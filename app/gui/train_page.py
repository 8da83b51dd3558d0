"""The page where a draft head is taught: settings on the left; numbers and curve on the right."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.gui.charts.learning import LearningChart
from app.gui.colours import Colours
from app.gui.form_page import form_panel, lay_out
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
        lay_out(self, self._left(), (self.tiles, self.progress, self.notice, self.chart))

    def take_keyboard(self) -> None:
        """Gives the keyboard to the first thing that can be done."""
        first = self.form.target if self.form.target.isEnabled() else self.stop
        first.setFocus()

    def _left(self) -> QWidget:
        panel, column = form_panel(spacing=6)
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
        column.addWidget(scroll, 1)
        column.addLayout(below)
        return panel
