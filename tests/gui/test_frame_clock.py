"""The frame clock: frames follow each other as fast as a share of the machine allows."""

from __future__ import annotations

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


def test_what_was_spent_before_the_start_counts_for_nothing(qtbot):
    frames: list[int] = []
    spent = iter([5.0, *[5.0] * 1000])
    clock = FrameClock(lambda: frames.append(1), spent=lambda: next(spent), cores=2)
    clock.start()
    qtbot.waitUntil(lambda: len(frames) > 2, timeout=5000)
    clock.stop()
    seen = len(frames)
    qtbot.wait(3 * FASTEST_MS)
    assert len(frames) == seen
