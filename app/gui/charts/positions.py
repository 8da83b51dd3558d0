"""How often the guess at each place of the draft was kept."""

from __future__ import annotations

import pyqtgraph as pg

from app.gui.charts.chart import Bars, Chart, faded
from app.gui.colours import Colours
from app.gui.series import RunSeries

_WIDTH = 0.38


class PositionsChart(Chart):
    """Acceptance by position, of all drafts and of those that came so far."""

    title = "Acceptance by position"
    figure = "conditional_acceptance"
    key = (("▮ of all drafts", "speculative"), ("▮ of those reached", "muted"))
    meaning = (
        "How often the 1st, 2nd, 3rd … guess of a draft was accepted: of all loops with a draft, "
        "and of those in which every guess before it was. In the corner: accepted of all tested."
    )

    def make_items(self) -> None:
        """Makes two groups of bars."""
        self.of_all = Bars(x=[], height=[], width=_WIDTH)
        self.if_reached = Bars(x=[], height=[], width=_WIDTH)
        for item in (self.of_all, self.if_reached):
            self.plot.addItem(item)
        self.set_ticks("left", [(0, "0"), (0.5, "50 %"), (1, "100 %")])

    def dress_items(self, colours: Colours) -> None:
        """Gives the bars their colours."""
        self.of_all.setOpts(brush=faded(colours.speculative), pen=pg.mkPen(None))
        self.if_reached.setOpts(brush=faded(colours.muted), pen=pg.mkPen(None))

    def feed(self, series: RunSeries) -> None:
        """Hands over the rates; their range is 0 to 1."""
        found = series.lane("speculative").by_position()
        places = [row.position for row in found]
        self.of_all.setOpts(
            x=[place - _WIDTH / 2 for place in places],
            height=[row.unconditional or 0.0 for row in found],
        )
        self.if_reached.setOpts(
            x=[place + _WIDTH / 2 for place in places],
            height=[row.conditional or 0.0 for row in found],
        )
        last = max([series.draft_length, *places, 4])
        step = -(-last // 8)
        self.set_ticks("bottom", [(n, str(n)) for n in range(1, last + 1, step)])
        self.set_ranges((0.4, last + 0.6), (0, 1.12))
