"""The strip above the lanes tells how far something has come, how fast, and how long it takes."""

import pytest

from app.gui.strips import ProgressStrip
from app.run.events import Progress
from app.run.pace import Pace


@pytest.fixture
def strip(qtbot):
    made = ProgressStrip()
    qtbot.addWidget(made)
    return made


def test_a_download_tells_its_speed_and_the_time_left(strip, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(strip, "_pace", Pace(lambda: now[0]))
    strip.show_progress(Progress("downloading a/b", 100e6, 900e6, "bytes"))
    assert strip._text.text() == "Downloading a/b: 100 of 900 MB"
    now[0] = 10.0
    strip.show_progress(Progress("downloading a/b", 300e6, 900e6, "bytes"))
    assert strip._text.text() == "Downloading a/b: 300 of 900 MB, 20.0 MB/s, 30 s left"
    strip.show_progress(Progress("loading"))
    assert strip._text.text() == "Loading…"
