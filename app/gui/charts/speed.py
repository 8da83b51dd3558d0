"""How fast both lanes write, along the text."""

from __future__ import annotations

from PySide6.QtCore import Qt

from app.gui.charts.chart import Chart, reach
from app.gui.colours import Colours
from app.gui.series import RECENT, RunSeries, curve, highest
from app.run.events import LaneName

_HEADROOM = 1.12
"""How much higher than the highest speed the chart reaches at least."""


class SpeedChart(Chart):
    """Decode speed of both lanes over their latest rounds, at the same place of the text."""

    title = "Speed, tokens/s"
    figure = "decode_speedup"
    key = (("━ speculative", "speculative"), ("┄ baseline", "baseline"))
    meaning = (
        f"Tokens a second over the latest {RECENT} loops, against tokens written, each lane on its "
        "own clock. In the corner: the decode speed-up so far."
    )

    def make_items(self) -> None:
        """Makes a curve for each lane."""
        lanes: tuple[LaneName, ...] = ("baseline", "speculative")
        self.curves = {name: self.plot.plot(connect="finite") for name in lanes}

    def dress_items(self, colours: Colours) -> None:
        """Gives the curves the colours of their lanes."""
        self.curves["speculative"].setPen(self.line(colours.speculative))
        self.curves["baseline"].setPen(self.line(colours.baseline, dashes=Qt.PenStyle.DashLine))

    def feed(self, series: RunSeries) -> None:
        """Hands over the speeds; the range begins at zero."""
        lanes = {name: series.lane(name) for name in self.curves}
        for name, lane in lanes.items():
            self.curves[name].setData(*curve(lane.recent_speed, lane.written))
        top = highest(*(lane.recent_speed for lane in lanes.values()))
        right = highest(*(lane.written for lane in lanes.values()))
        self.set_ticks("left", None if top else [(0, "0")])
        self.set_ranges((0, reach(max(right, 10))), (0, reach(_HEADROOM * top) or 1))
