"""What all charts share: a panel with a title, a number, a key, and a plot of fixed items."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import pyqtgraph as pg
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen
from PySide6.QtWidgets import QFrame, QGraphicsItem, QHBoxLayout, QVBoxLayout, QWidget

from app.gui.colours import Colours
from app.gui.elided import Elided
from app.gui.plain import label, scaled_font, tip
from app.gui.series import RunSeries
from app.run.figures import FIGURES
from app.run.record import RunRecord

pg.setConfigOptions(antialias=True)

CURVE_WIDTH = 1.6
"""Device-independent pixels; a pen of more than one is cheap only while curves have few points."""

Ticks = list[tuple[float, str]]
"""Values of an axis, and what stands beside them."""

_STEPS = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.4, 8.0, 10.0)
"""Where a growing axis may end within a power of ten: each about a quarter above the one before."""


class Bars(pg.BarGraphItem):
    """Bars with hard edges: smoothing those of many rectangles is what a chart would cost most."""

    def paint(self, painter: QPainter, *rest: object) -> None:
        """Paints the bars."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        super().paint(painter, *rest)


class ChartPanel(QFrame):
    """One chart. Curves are made once and fed; ranges are set, never guessed from the data."""

    title: ClassVar[str]
    key: ClassVar[tuple[tuple[str, str], ...]]
    """Words of the key, each with its tone."""
    meaning: ClassVar[str]

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("panel")
        self.plot = pg.PlotWidget(enableMenu=False)
        self.plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.plot.setMouseEnabled(False, False)
        self.plot.hideButtons()
        self.plot.setFrameShape(QFrame.Shape.NoFrame)
        self.plot.viewport().setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._ranges: tuple[tuple[float, float], tuple[float, float]] | None = None
        self._ticks: dict[str, Ticks | None] = {}
        self.number = label()
        self.setToolTip(tip(f"{self.title}\n{self.meaning}"))
        self._lay_out()
        self.make_items()
        self.set_colours(colours)

    @abstractmethod
    def make_items(self) -> None:
        """Makes the curves and bars, once."""

    @abstractmethod
    def dress_items(self, colours: Colours) -> None:
        """Gives the items their colours."""

    def make_key(self) -> list[QWidget]:
        """Makes the parts of the key."""
        return [Elided(word, tone=tone) for word, tone in self.key]

    def show_number(self, text: str) -> None:
        """Puts a number into the corner, and into what is told of the chart to those who listen."""
        self.number.setText(text)
        self.setAccessibleName(f"Chart: {self.title}")
        self.setAccessibleDescription(f"{self.meaning} Now: {text or 'nothing yet'}.")

    def set_colours(self, colours: Colours) -> None:
        """Takes on another scheme."""
        self._colours = colours
        self.plot.setBackground(colours.panel)
        for name in ("left", "bottom"):
            axis = self.plot.getAxis(name)
            axis.setPen(colours.border)
            axis.setTextPen(colours.muted)
        self.plot.showGrid(x=False, y=True, alpha=0.14)
        self.dress_items(colours)

    def line(
        self,
        colour: str,
        *,
        dashes: Qt.PenStyle = Qt.PenStyle.SolidLine,
        width: float = CURVE_WIDTH,
    ) -> QPen:
        """A pen for a curve. Qt counts a cosmetic pen's width in the screen's own pixels."""
        return pg.mkPen(colour, width=width * self.devicePixelRatioF(), style=dashes)

    def event(self, event: QEvent) -> bool:
        """Draws anew for a screen of another density."""
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self.set_colours(self._colours)
        return super().event(event)

    def set_ranges(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        """Shows this part of the plane. Axes are drawn anew only when it changes."""
        if (x, y) != self._ranges:
            self._ranges = (x, y)
            self.plot.setRange(xRange=x, yRange=y, padding=0, disableAutoRange=True)

    def set_ticks(self, axis: str, ticks: Ticks | None) -> None:
        """Marks these values of an axis with these words; None leaves it to the axis."""
        if ticks != self._ticks.get(axis):
            self._ticks[axis] = ticks
            self.plot.getAxis(axis).setTicks(None if ticks is None else [ticks, []])

    def _lay_out(self) -> None:
        title = Elided(self.title.upper(), tone="muted")
        scaled_font(title, 0.85)
        scaled_font(self.number, 0.92, bold=True)
        head = QHBoxLayout()
        head.setSpacing(6)
        head.addWidget(title)
        head.addStretch()
        head.addWidget(self.number)
        key = QHBoxLayout()
        key.setSpacing(7)
        for part in self.make_key():
            scaled_font(part, 0.82)
            key.addWidget(part)
        key.addStretch()
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 7, 7, 5)
        column.setSpacing(1)
        column.addLayout(head)
        column.addLayout(key)
        column.addWidget(self.plot, 1)
        self._dress_axes()

    def _dress_axes(self) -> None:
        font = QFont(self.font())
        font.setPointSizeF(font.pointSizeF() * 0.8)
        for name in ("left", "bottom"):
            axis = self.plot.getAxis(name)
            axis.setTickFont(font)
            axis.setStyle(tickLength=0, tickTextOffset=5, autoExpandTextSpace=True)
            axis.enableAutoSIPrefix(False)
            axis.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)


class Chart(ChartPanel):
    """A chart of a run, with one of its figures in the corner."""

    figure: ClassVar[str]

    def __init__(self, colours: Colours, parent: QWidget | None = None) -> None:
        super().__init__(colours, parent)
        self.show_series(RunSeries(), None)

    @abstractmethod
    def feed(self, series: RunSeries) -> None:
        """Hands the series to the items and sets the ranges."""

    def show_series(self, series: RunSeries, record: RunRecord | None) -> None:
        """Draws the series, and puts the record's figure into the corner."""
        self.feed(series)
        self.show_figure(record)

    def show_figure(self, record: RunRecord | None) -> None:
        """Puts the record's figure into the corner, without a unit that the title names."""
        figure = FIGURES[self.figure]
        number = figure.text(record).partition(" (")[0] if record else ""
        named = figure.unit and figure.unit in self.title.lower()
        self.show_number(number.removesuffix(f" {figure.unit}") if named else number)


def reach(value: float) -> float:
    """The end of an axis that has to hold a value: one of few, so that a growing axis rests."""
    if value <= 0:
        return 0.0
    decade = 10.0 ** math.floor(math.log10(value))
    return decade * next(step for step in _STEPS if value <= step * decade * (1 + 1e-9))


def faded(colour: str) -> QColor:
    """The colour of a bar: large areas need less of it."""
    made = QColor(colour)
    made.setAlphaF(0.78)
    return made
