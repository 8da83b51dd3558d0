"""The frame clock: frames follow each other as fast as a share of the machine allows."""

from __future__ import annotations

import time

import pytest

from app.gui.frame_clock import FASTEST_MS, SHARE_OF_MACHINE, SLOWEST_MS, FrameClock


@pytest.mark.parametrize(
    ("cost_ms", "cores", "pause"),
    [
        (0.0, 2, FASTEST_MS),
        (2.0, 2, 100),  # 2 ms in 100 ms are 2 % of one core, 1 % of two
        (2.0, 4, 50),
        (2.0, 64, FASTEST_MS),
        (50.0, 2, SLOWEST_MS),
    ],
)
def test_a_frame_waits_until_what_was_spent_is_the_allowed_share(qapp, cost_ms, cores, pause):
    assert SHARE_OF_MACHINE == 0.01
    seconds = iter([cost_ms / 1000])
    clock = FrameClock(lambda: None, spent=lambda: next(seconds), cores=cores)
    assert clock.pause_ms() == pytest.approx(pause, abs=1)


def test_frames_come_until_the_clock_is_stopped(application):
    frames: list[int] = []
    clock = FrameClock(lambda: frames.append(1), spent=lambda: 5.0, cores=2)
    clock.start()
    _pass_time(application, until=lambda: len(frames) > 2, at_most=20.0)
    clock.stop()
    seen = len(frames)
    assert seen > 2
    _pass_time(application, until=lambda: False, at_most=4 * FASTEST_MS / 1000)
    assert len(frames) == seen


def test_what_was_spent_before_the_start_counts_for_nothing(application):
    spent = iter([5.0, 5.002])
    clock = FrameClock(lambda: None, spent=lambda: next(spent), cores=2)
    clock.start()
    clock.stop()
    assert clock.pause_ms() == pytest.approx(100, abs=1)


def _pass_time(application, *, until, at_most):
    """Turns the events over; a wait of the library's would not, once a test has ended the loop."""
    end = time.monotonic() + at_most
    while time.monotonic() < end and not until():
        application.processEvents()
        time.sleep(0.002)
