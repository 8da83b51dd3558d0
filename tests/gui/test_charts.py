"""Charts draw what metrics says, whatever comes, with items made once."""

from __future__ import annotations

import math
from array import array

import msgspec
import numpy as np
import pyqtgraph as pg
import pytest
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication
from scripted_engine import pieces_of, record_of, rounds_of, run_of

from app.gui.charts import CHARTS, ChartRow
from app.gui.charts.chart import reach
from app.gui.colours import DARK
from app.gui.series import MOST_BARS, MOST_POINTS, LaneSeries, RunSeries, bars, curve, highest
from app.run.metrics import Counts, acceptance_by_position, counts
from app.run.record import Repetition


def series_of(rounds) -> LaneSeries:
    made = LaneSeries()
    repetition = Repetition(at=None, rounds=list(rounds))
    made.read(repetition)
    return made


@pytest.fixture
def row(application, theme):
    made = ChartRow(DARK)
    made.resize(1000, 220)
    made.show()
    yield made
    made.close()
    made.deleteLater()


def test_series_are_what_metrics_says_after_every_round():
    rounds = list(rounds_of(pieces_of("one two three four five six seven eight nine ten " * 9)))
    series = series_of(rounds)
    for place in range(1, len(rounds) + 1):
        tally = Counts().plus(rounds[:place])
        expected = math.nan if tally.acceptance_rate is None else tally.acceptance_rate
        np.testing.assert_equal(series.acceptance[place - 1], expected)
        assert series.tokens_per_loop[place - 1] == tally.tokens_per_loop
        assert series.written[place - 1] == tally.committed_after_first
    assert series.by_position() == acceptance_by_position(rounds)


def test_a_series_reads_on_where_it_stopped():
    rounds = list(rounds_of(pieces_of("one two three four five six " * 20)))
    whole, growing = series_of(rounds), LaneSeries()
    repetition = Repetition(at=None)
    for round_ in rounds:
        repetition.rounds.append(round_)
        growing.read(repetition)
    for name in ("acceptance", "recent_acceptance", "recent_speed", "written", "committed"):
        np.testing.assert_array_equal(getattr(growing, name), getattr(whole, name))
    assert growing.by_position() == whole.by_position()


@pytest.mark.parametrize(
    "values", [[], [math.nan], [math.nan, 0.5], [math.inf, 1.0], [0.5], [2.0] * 9, [0.0]]
)
def test_any_values_make_finite_points_or_gaps(values):
    x, y = curve(array("d", values))
    assert len(x) == len(y) == len(values)
    assert not np.isinf(y).any()
    assert math.isfinite(highest(array("d", values)))


def test_long_curves_are_thinned_and_keep_their_last_point():
    x, y = curve(array("d", range(20_001)))
    assert len(x) <= MOST_POINTS + 1
    assert (x[-1], y[-1]) == (20_001, 20_000)


def test_many_rounds_share_bars_whose_heights_are_means():
    middles, heights, shared = bars(array("d", [1.0, 3.0] * 500))
    assert len(middles) <= MOST_BARS
    assert shared == 13
    assert heights[:-1] == pytest.approx(heights[0], abs=0.3)
    assert heights.min() >= 1
    assert bars(array("d"))[2] == 1


def test_empty_one_sided_and_partial_records_are_drawn(row):
    for events in ([run_of()[0]], run_of()[:2], run_of()[:7], run_of(baseline=False), run_of("")):
        row.show_record(record_of(events))
        QApplication.processEvents()
    row.show_record(None)


def test_the_corner_shows_the_records_own_figure(row):
    record = record_of(run_of())
    row.show_record(record)
    rate = counts(record.repetitions("speculative")[-1]).acceptance_rate
    assert row.charts[0].number.text() == f"{100 * rate:.1f} %"


def test_curves_reach_the_screen(row):
    row.show_record(record_of(run_of()))
    QApplication.processEvents()
    image = row.charts[2].plot.grab().toImage()
    wanted = QColor(DARK.speculative)
    near = sum(
        abs(QColor(image.pixel(x, y)).green() - wanted.green()) < 40
        for x in range(image.width())
        for y in range(image.height())
    )
    assert near > 50
    before = row.charts[2].plot.viewRange()
    for _ in range(10):
        QApplication.processEvents()
    assert row.charts[2].plot.viewRange() == before


def outgrown(rounds, after: int):
    """The same rounds; from one on plain, as the draft's context is full."""
    for round_ in rounds:
        if round_.index < after:
            yield round_
        else:
            own = msgspec.structs.replace(round_.committed[-1], status="plain")
            yield msgspec.structs.replace(
                round_, limit=0, limited_by="draft's context", committed=(own,), thrown=()
            )


def test_loops_that_a_short_context_of_the_draft_leaves_plain_are_marked(row):
    record = record_of(run_of())
    chart = row.charts[1]
    row.show_record(record)
    QApplication.processEvents()
    assert not chart.outgrown_key.isVisible()
    assert chart.outgrown.getData()[0] is None or not len(chart.outgrown.getData()[0])
    lane = record.repetitions("speculative")[0]
    lane.rounds[:] = outgrown(lane.rounds, after=5)
    row.show_record(None)
    row.show_record(record)
    QApplication.processEvents()
    x, y = chart.outgrown.getData()
    assert x.tolist() == list(range(6, len(lane.rounds) + 1))
    assert set(y.tolist()) == {1.3}
    assert chart.outgrown_key.isVisible()
    assert "context" in chart.outgrown_key.text()


def test_items_are_made_once(row):
    def items():
        return [len(chart.plot.scene().items()) for chart in row.charts]

    row.show_record(record_of(run_of()))
    before = items()
    for _ in range(30):
        row.show_record(record_of(run_of()))
    assert items() == before


def test_a_hidden_row_catches_up_when_it_is_shown(row):
    record = record_of(run_of())
    row.hide()
    row.show_record(record)
    row.show()
    assert row.charts[0].number.text() != ""


def test_every_chart_says_what_it_shows():
    for kind in CHARTS:
        assert kind.meaning.endswith(".")
        assert kind.title
    assert RunSeries().draft_length == 0


@pytest.mark.parametrize(
    ("value", "end"), [(0, 0), (10, 10), (10.1, 12.5), (17, 20), (99, 100), (101, 125), (0.3, 0.32)]
)
def test_an_axis_ends_at_one_of_few_values(value, end):
    assert reach(value) == pytest.approx(end)


def test_axes_are_drawn_anew_only_when_their_range_changes(row, monkeypatch):
    drawn = []
    paint = pg.AxisItem.paint

    def noting(axis, *rest):
        drawn.append(axis.orientation)
        paint(axis, *rest)

    monkeypatch.setattr(pg.AxisItem, "paint", noting)
    events = run_of()
    for upto, axes_rest in ((26, False), (27, True)):
        drawn.clear()
        row.show_record(record_of(events[:upto]))
        for _ in range(5):
            QApplication.processEvents()
        assert (drawn == []) == axes_rest, [chart.plot.viewRange() for chart in row.charts]


def test_the_highest_speed_stands_clear_of_the_top(row):
    record = record_of(run_of())
    row.show_record(record)
    chart = next(chart for chart in row.charts if chart.figure == "decode_speedup")
    for speed in (99.0, 100.0, 117.0, 120.0, 124.0):
        series = RunSeries()
        series.read(record)
        lane = series.lane("speculative")
        lane.recent_speed = array("d", [speed] * len(lane))
        chart.show_series(series, record)
        assert chart.plot.viewRange()[1][1] >= 1.1 * speed
