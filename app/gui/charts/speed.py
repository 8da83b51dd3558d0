"""How fast both lanes write, along the text."""

from __future__ import annotations

from PySide6.QtCore import Qt

from app.gui.charts.chart import Chart, line
from app.gui.colours import Colours
from app.gui.series import RECENT, RunSeries, curve, highest


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
        self.curves = {
            name: self.plot.plot(connect="finite") for name in ("baseline", "speculative")
        }

    def dress_items(self, colours: Colours) -> None:
        """Gives the curves the colours of their lanes."""
        self.curves["speculative"].setPen(line(colours.speculative))
        self.curves["baseline"].setPen(line(colours.baseline, dashes=Qt.PenStyle.DashLine))

    def feed(self, series: RunSeries) -> None:
        """Hands over the speeds; the range begins at zero."""
        lanes = {name: series.lane(name) for name in self.curves}
        for name, lane in lanes.items():
            self.curves[name].setData(*curve(lane.recent_speed, lane.written))
        top = highest(*(lane.recent_speed for lane in lanes.values()))
        right = highest(*(lane.written for lane in lanes.values()))
        self.set_ranges((0, max(right, 10)), (0, 1.08 * top or 1))
