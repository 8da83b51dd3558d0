"""The order of lanes, with lanes that only say what they were asked."""

import pytest

from app.run.events import LaneEnded, LaneStarted
from app.run.settings import RunSettings
from app.studies.orders import lane_events


class Lanes:
    """Opens lanes that end at once, as a person would have it from some lane on."""

    def __init__(self, order: str, cancelled_from: int) -> None:
        self.settings = RunSettings(pair="any", prompt="any", repetitions=3, order=order)
        self.cancelled_from = cancelled_from
        self.opened = 0

    def open(self, at, pause):
        yield LaneStarted(at)
        self.opened += 1
        yield LaneEnded(at, "length" if self.opened < self.cancelled_from else "cancelled")


@pytest.mark.parametrize("order", ["interleaved", "alternated"])
def test_no_lane_opens_behind_one_that_was_cancelled(order):
    maker = Lanes(order, cancelled_from=3)
    list(lane_events(maker, "run", lambda: None))
    assert maker.opened == 3


@pytest.mark.parametrize("order", ["interleaved", "alternated"])
def test_all_lanes_open_if_none_was_cancelled(order):
    maker = Lanes(order, cancelled_from=99)
    list(lane_events(maker, "run", lambda: None))
    assert maker.opened == 6
