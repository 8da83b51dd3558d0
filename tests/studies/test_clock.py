"""Time spent on questions between two passes belongs to no lane."""

import time

import pytest
import torch

from app.decoding.clock import EventClock, HostClock, clock_for
from app.run.settings import RunSettings
from app.studies.lanes import _off_the_clock


def test_a_long_pause_is_left_out():
    clock = HostClock()
    start, mark = clock.now(), clock.mark()
    _off_the_clock(lambda: time.sleep(0.3), clock)()
    assert clock.now() - start < 0.2
    assert clock.seconds(mark, clock.mark()) < 0.2


class FakeEvent:
    """F7: an event that has a time only once someone has waited for it."""

    now = 0.0

    def __init__(self, enable_timing):
        assert enable_timing
        self.waited = False

    def record(self):
        self.at = FakeEvent.now

    def synchronize(self):
        self.waited = True

    def elapsed_time(self, other):
        assert other.waited
        return (other.at - self.at) * 1000


def test_events_are_read_after_waiting_and_without_pauses():
    clock = EventClock(FakeEvent)
    first = clock.mark()
    FakeEvent.now += 5.0
    clock.skip(2.0)
    assert clock.seconds(first, clock.mark()) == pytest.approx(3.0)


def test_an_event_stands_in_the_stream_that_its_clock_is_for():
    asked = []

    class Recorded(FakeEvent):
        def record(self, *stream):
            asked.append(stream)
            super().record()

    EventClock(Recorded, lambda: ("of cuda:1",)).mark()
    EventClock(Recorded).mark()
    assert asked == [("of cuda:1",), ()]


def test_a_long_pause_is_left_out_of_every_clock():
    clocks = HostClock(), HostClock()
    starts = [clock.now() for clock in clocks]
    _off_the_clock(lambda: time.sleep(0.3), *clocks)()
    assert all(clock.now() - start < 0.2 for clock, start in zip(clocks, starts, strict=True))


def test_waiting_is_for_an_event_behind_everything_else():
    made = []

    def event(enable_timing):
        made.append(FakeEvent(enable_timing))
        return made[-1]

    EventClock(event).wait()
    assert [one.waited for one in made] == [True]


def test_the_cpu_needs_no_events():
    assert isinstance(clock_for(torch.device("cpu")), HostClock)


@pytest.mark.embedded
def test_questions_during_a_run_do_not_slow_its_figures(run_here):
    settings = RunSettings(
        pair="embedded", prompt="Count to five.", precision="bf16", max_new_tokens=6, baseline=False
    )
    run_here(settings)  # loads the pair, and keeps what its passes cost
    questions = iter(range(6))

    def pause():
        if next(questions, None) is not None:
            time.sleep(0.5)

    record = run_here(settings, pause=pause)
    assert next(questions, None) is None
    rounds = record.repetitions("speculative")[0].rounds
    assert min(round_.phases.total for round_ in rounds) < 0.5
