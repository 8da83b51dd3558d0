"""How good a head has become, along the tokens that it learned from."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.gui.charts.chart import CURVE_WIDTH, ChartPanel, Ticks, reach
from app.gui.colours import Colours
from app.gui.plain import label, scaled_font
from app.run.teaching import CurvePoint

DEPTHS = 4
"""Depths that are judged."""

_DASHES = (
    Qt.PenStyle.SolidLine,
    Qt.PenStyle.DashLine,
    Qt.PenStyle.DashDotLine,
    Qt.PenStyle.DotLine,
)
_SYMBOLS = ("o", "s", "t1", "d")
_SYMBOL_SIZE = 7.0


class LearningChart(ChartPanel):
    """The share of guesses kept at each depth; each depth has its dashes, its mark, its colour."""

    title = "Guesses kept, by depth, against tokens learned from"
    key = tuple((f"depth {depth}", "") for depth in range(1, DEPTHS + 1))
    meaning = (
        "On texts that were held out: of the guesses at a depth whose forerunners were kept, the "
        "share that the target would keep too. Tokens count at every visit. In the corner: guesses "
        "kept of a draft as deep as that, on average."
    )

    def make_items(self) -> None:
        """Makes a curve for each depth."""
        self.curves = [self.plot.plot(symbol=symbol) for symbol in _SYMBOLS]
        self.show_number("")

    def make_key(self) -> list[QWidget]:
        """Makes a sample of each curve with its name."""
        self.samples = [_Sample(depth) for depth in range(DEPTHS)]
        parts: list[QWidget] = []
        for (word, _), sample in zip(self.key, self.samples, strict=True):
            part = QWidget()
            row = QHBoxLayout(part)
            row.setContentsMargins(0, 0, 6, 0)
            row.setSpacing(5)
            name = label(word, tone="muted")
            scaled_font(name, 0.88)
            row.addWidget(sample)
            row.addWidget(name)
            parts.append(part)
        return parts

    def dress_items(self, colours: Colours) -> None:
        """Gives curves and samples their colours."""
        for depth, colour in enumerate(_colours(colours)):
            curve = self.curves[depth]
            curve.setPen(self.line(colour, dashes=_DASHES[depth]))
            curve.setSymbolPen(pg.mkPen(colours.panel))
            curve.setSymbolBrush(pg.mkBrush(colour))
            curve.setSymbolSize(_SYMBOL_SIZE)
            self.samples[depth].set_colour(colour)

    def show_curve(self, points: Sequence[CurvePoint]) -> None:
        """Draws a curve as far as it has come; its y-range leaves out what no point is near."""
        tokens = [point.tokens for point in points]
        shares = [
            [point.acceptance[depth] for point in points if depth < len(point.acceptance)]
            for depth in range(DEPTHS)
        ]
        for curve, ys in zip(self.curves, shares, strict=True):
            curve.setData(tokens[: len(ys)], ys)
        right = reach(max([1.04 * one for one in tokens] + [1000]))
        top = _top(max((share for ys in shares for share in ys), default=0.5))
        self.set_ticks("left", [(n / 10, f"{10 * n} %" if n else "0") for n in _steps(top)])
        self.set_ticks("bottom", _token_ticks(right))
        self.set_ranges((-0.012 * right, right), (-0.02 * top, 1.02 * top))
        self.show_number(f"{points[-1].kept:.2f} kept of {DEPTHS}" if points else "")


class _Sample(QWidget):
    """A piece of a curve with its mark."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self._depth = depth
        self._colour = QColor()
        self.setFixedSize(self.sizeHint())

    def sizeHint(self) -> QSize:
        """As wide as the dashes need to be told apart."""
        return QSize(4 * self.fontMetrics().averageCharWidth() + 10, self.fontMetrics().height())

    def set_colour(self, colour: str) -> None:
        """Takes on another colour."""
        self._colour = QColor(colour)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paints the curve as the chart draws it."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(
            pg.mkPen(
                self._colour,
                width=CURVE_WIDTH * self.devicePixelRatioF(),
                style=_DASHES[self._depth],
            )
        )
        middle = QPointF(self.width() / 2, self.height() / 2)
        painter.drawLine(QPointF(0, middle.y()), QPointF(self.width(), middle.y()))
        painter.translate(middle)
        painter.scale(_SYMBOL_SIZE, _SYMBOL_SIZE)
        mark: QPainterPath = pg.graphicsItems.ScatterPlotItem.Symbols[_SYMBOLS[self._depth]]
        painter.fillPath(mark, self._colour)


def _colours(colours: Colours) -> tuple[str, ...]:
    return (colours.speculative, colours.accent, colours.baseline, colours.muted)


def _top(share: float) -> float:
    """The end of the axis of shares, in tenths."""
    return min(1.0, (int(share * 10) + 1) / 10)


def _steps(top: float) -> list[int]:
    """The tenths that are marked."""
    whole = round(top * 10)
    return list(range(0, whole + 1, 1 if whole <= 4 else 2))


def _token_ticks(right: float) -> Ticks:
    """About five marks along the tokens, in thousands or millions."""
    step = reach(right / 6)
    return [(step * n, short_count(step * n)) for n in range(int(right / step) + 1)]


def short_count(number: float) -> str:
    """A number of tokens in short."""
    if number >= 999_500:
        return f"{number / 1e6:.3g} M"
    return f"{number / 1e3:.3g} k" if number >= 1000 else f"{number:.0f}"
