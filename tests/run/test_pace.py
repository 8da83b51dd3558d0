"""The speed of a stage and the time left, as terminal and window tell them."""

import pytest

from app.run.events import Progress
from app.run.pace import Pace, in_words


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def downloading(done, total=1000e6):
    return Progress("Downloading a/b", done, total, "bytes")


def test_what_was_there_already_is_no_speed():
    clock = Clock()
    pace = Pace(clock)
    assert pace.words(downloading(400e6)) == ""
    clock.now += 2
    assert pace.words(downloading(420e6)) == "10.0 MB/s, 58 s left"


def test_the_speed_is_that_of_the_last_seconds():
    clock = Clock()
    pace = Pace(clock)
    for _ in range(60):  # a minute of 1 MB/s
        pace.speed(downloading(clock.now * 1e6 - 100e6))
        clock.now += 1
    for second in range(21):  # then twenty seconds of 5 MB/s
        found = pace.speed(downloading(60e6 + second * 5e6))
        clock.now += 1
    assert found.per_second == pytest.approx(5e6)
    assert found.seconds_left == pytest.approx((1000e6 - 160e6) / 5e6)


def test_a_standstill_has_no_end():
    clock = Clock()
    pace = Pace(clock)
    for _ in range(40):
        told = pace.words(downloading(50e6))
        clock.now += 1
    assert told == "0.0 MB/s"


def test_another_stage_and_a_step_back_begin_anew():
    clock = Clock()
    pace = Pace(clock)
    pace.speed(downloading(0))
    clock.now += 1
    assert pace.speed(downloading(10e6))
    assert pace.speed(Progress("Converting", 900e6, 1000e6, "bytes")) is None
    clock.now += 1
    assert pace.speed(Progress("Converting", 950e6, 1000e6, "bytes")).per_second == 50e6
    assert pace.speed(Progress("Converting", 0, 1000e6, "bytes")) is None


def test_other_units_are_told_the_time_left_alone():
    clock = Clock()
    pace = Pace(clock)
    pace.words(Progress("measuring", 0, 10, "passes"))
    clock.now += 100
    assert pace.words(Progress("measuring", 5, 10, "passes")) == "2 min left"
    for silent in (Progress("loading"), Progress("teaching", 3, 60, "s")):
        pace.words(silent)
        clock.now += 10
        assert pace.words(silent) == ""


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (89, "89 s"), (90, "2 min"), (5400, "1.5 h")]
)
def test_durations_in_words(seconds, words):
    assert in_words(seconds) == words
