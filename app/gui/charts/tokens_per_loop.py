"""How many tokens each pass of the target yielded."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.gui.charts.chart import Bars, Chart, faded, reach
from app.gui.colours import Colours
from app.gui.elided import Elided
from app.gui.series import RunSeries, bars, curve

_MARK = 7.0
"""Size of a mark above a bar."""
_ABOVE = 0.3
"""How far above its bar it stands, in tokens."""


class TokensPerLoopChart(Chart):
    """Tokens committed by every loop, their mean so far, and the most that a loop can yield."""

    title = "Tokens per loop"
    figure = "tokens_per_loop"
    key = (("▮ each loop", "accent"), ("━ mean", ""), ("┄ γ + 1", "muted"))
    meaning = (
        "Tokens that each pass of the target added. No loop can yield more than the draft length "
        "and one. Where loops are many, neighbours share a bar: their mean. A triangle marks loops "
        "in which nothing was guessed, as the draft model's own context is full."
    )

    def make_items(self) -> None:
        """Makes the bars, the curve and the ceiling."""
        self.each = Bars(x=[], height=[], width=0.8)
        self.plot.addItem(self.each)
        self.mean = self.plot.plot(connect="finite")
        self.ceiling = pg.InfiniteLine(angle=0)
        self.plot.addItem(self.ceiling)
        self.outgrown = self.plot.plot(pen=None, symbol="t1", symbolSize=_MARK, symbolPen=None)

    def make_key(self) -> list[QWidget]:
        """Makes the parts of the key; that of the marks is only seen where there are some."""
        self.outgrown_key = Elided("▲ draft's context full")
        self.outgrown_key.hide()
        return [*super().make_key(), self.outgrown_key]

    def dress_items(self, colours: Colours) -> None:
        """Gives the items their colours."""
        self.each.setOpts(brush=faded(colours.accent), pen=pg.mkPen(None))
        self.mean.setPen(self.line(colours.text))
        self.ceiling.setPen(self.line(colours.muted, dashes=Qt.PenStyle.DashLine, width=1.2))
        self.outgrown.setSymbolBrush(colours.text)

    def feed(self, series: RunSeries) -> None:
        """Hands over the counts; the range ends a little above the ceiling."""
        lane = series.lane("speculative")
        middles, heights, shared = bars(lane.committed)
        self.each.setOpts(x=middles, height=heights, width=0.8 * shared)
        self.mean.setData(*curve(lane.tokens_per_loop))
        marked = bars(lane.outgrown)[1] > 0
        self.outgrown.setData(middles[marked], heights[marked] + _ABOVE)
        self.outgrown_key.setVisible(bool(marked.any()))
        most = series.draft_length + 1
        self.ceiling.setValue(most)
        self.ceiling.setVisible(len(lane) > 0)
        step = -(-most // 5)
        ticks = [(float(n), str(n)) for n in range(0, most + 1, step)]
        self.set_ticks("left", ticks)
        self.set_ranges((0.5, reach(max(len(lane), 10)) + 0.5), (0, most + 0.4))
