"""What a pass of the target costs by its width, beside a step of the draft."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import Qt

from app.gui.charts.chart import Bars, Chart, faded
from app.gui.colours import Colours
from app.gui.series import RunSeries


class CostsChart(Chart):
    """Passes by their rows, the one of a whole draft picked out, in single steps."""

    title = "Cost of a pass"
    figure = "verify_cost"
    key = (("▮ by rows", "muted"), ("▮ γ + 1 rows", "accent"), ("┄ draft step", "speculative"))
    meaning = (
        "What a pass of the target costs by its rows, in passes of one row; measured after the "
        "lanes, at this run's context. A flat row of bars is what speculation lives on. The dashed "
        "line is a step of the draft model. In the corner: a pass over a whole draft."
    )

    def make_items(self) -> None:
        """Makes the bars of both kinds and the line of the draft."""
        self.others, self.own = (Bars(x=[], height=[], width=0.8) for _ in range(2))
        self.step = pg.InfiniteLine(angle=0)
        for item in (self.others, self.own, self.step):
            self.plot.addItem(item)

    def dress_items(self, colours: Colours) -> None:
        """Gives the items their colours."""
        self.others.setOpts(brush=faded(colours.muted), pen=pg.mkPen(None))
        self.own.setOpts(brush=faded(colours.accent), pen=pg.mkPen(None))
        self.step.setPen(self.line(colours.speculative, dashes=Qt.PenStyle.DashLine))

    def feed(self, series: RunSeries) -> None:
        """Hands over the costs; the range begins at zero and holds the dearest pass."""
        costs, own = series.costs, series.pass_rows
        steps = costs.single_steps if costs else {}
        for item, mine in ((self.own, True), (self.others, False)):
            bars = {width: cost for width, cost in steps.items() if (width == own) is mine}
            item.setOpts(x=list(bars), height=list(bars.values()))
        draft = costs.draft_ratio if costs else None
        self.step.setVisible(draft is not None)
        self.step.setValue(draft or 0.0)
        last, top = max([*steps, 8]), max([*steps.values(), draft or 0.0, 1.0])
        self.set_ticks("bottom", [(n, str(n)) for n in range(1, last + 1, -(-last // 9))])
        self.set_ranges((0.4, last + 0.6), (0, 1.08 * top))
