"""How much of what was guessed was kept, over the loops."""

from __future__ import annotations

from PySide6.QtCore import Qt

from app.gui.charts.chart import Chart, reach
from app.gui.colours import Colours
from app.gui.series import RECENT, RunSeries, curve


class AcceptanceChart(Chart):
    """Acceptance rate so far, and of the latest rounds."""

    title = "Acceptance rate"
    figure = "acceptance_rate"
    key = (("━ so far", "speculative"), (f"┄ latest {RECENT} loops", "muted"))
    meaning = "Guesses accepted / guesses made, over the loops."

    def make_items(self) -> None:
        """Makes the two curves."""
        self.recent = self.plot.plot(connect="finite")
        self.so_far = self.plot.plot(connect="finite")
        self.set_ticks("left", [(0, "0"), (0.5, "50 %"), (1, "100 %")])

    def dress_items(self, colours: Colours) -> None:
        """Gives the curves their colours."""
        self.so_far.setPen(self.line(colours.speculative))
        self.recent.setPen(self.line(colours.muted, dashes=Qt.PenStyle.DotLine, width=1.2))

    def feed(self, series: RunSeries) -> None:
        """Hands over the rates; their range is 0 to 1."""
        lane = series.lane("speculative")
        self.so_far.setData(*curve(lane.acceptance))
        self.recent.setData(*curve(lane.recent_acceptance))
        self.set_ranges((1, reach(max(len(lane), 10))), (0, 1.12))
