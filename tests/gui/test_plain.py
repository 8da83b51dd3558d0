"""Nothing that a model, a file or a catalogue says is read as markup."""

from __future__ import annotations

import sys

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget
from recorded import HOSTILE
from scripted_engine import run_of

from app.gui import crash
from app.gui.crash import crash_box, install_crash_dialog
from app.gui.engine_link import EngineLink
from app.gui.plain import tip, visible
from app.gui.slow_clock import Part, SlowClock
from app.gui.window import MainWindow
from app.library.catalogue import Catalogue
from app.library.entries import FolderSource, ModelEntry, PairEntry

EVIL = "<img src=x onerror=1><b>&lt;5 && a<b</b> <script>"


@pytest.fixture
def evil_window(application, theme, client):
    """A window whose catalogue is full of markup."""
    model = ModelEntry(EVIL, EVIL, FolderSource(EVIL))
    pair = PairEntry(EVIL, EVIL, EVIL, "ngram", note=EVIL)
    made = MainWindow(EngineLink(client), Catalogue((model,), (pair,), EVIL), theme)
    made.show()
    yield made
    made.close()
    made.deleteLater()


def test_every_label_is_plain_and_every_tooltip_is_told_apart(evil_window, client):
    evil_window.begin()
    evil_window.stop_clocks()
    client.play(*run_of(EVIL, prompt=EVIL))
    evil_window.frame()
    evil_window.page.notice.show_trouble(EVIL, EVIL)
    for widget in evil_window.findChildren(QWidget):
        assert not widget.toolTip() or widget.toolTip().startswith("<qt>")
        # QSpinBox, QMenu and the like have no labels; what is left is ours.
        if isinstance(widget, QLabel):
            assert widget.textFormat() == Qt.TextFormat.PlainText, widget.text()
    assert evil_window.page.form.picker.note.text() == EVIL
    assert EVIL in evil_window.page.notice.text.text()


@pytest.mark.parametrize("text", HOSTILE)
def test_a_tooltip_escapes_and_a_card_pictures(text):
    assert "<script" not in tip(text)
    assert not set(visible(text)) & {chr(code) for code in range(0x20)}


def test_the_crash_dialog_is_plain(application):
    parent = QWidget()
    box = crash_box(parent, EVIL)
    assert box.textFormat() == Qt.TextFormat.PlainText
    parent.deleteLater()


def test_a_fault_is_shown_once_and_closes_the_window(evil_window, monkeypatch, capsys):
    shown = []

    class Box:
        def exec(self) -> None:
            shown.append(True)

    monkeypatch.setattr(crash, "crash_box", lambda *_: Box())
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    caught = install_crash_dialog(evil_window)
    for _ in range(2):
        sys.excepthook(ValueError, ValueError("a fault"), None)
    assert shown == [True]
    assert len(caught) == 2
    assert not evil_window.isVisible()
    assert "a fault" in capsys.readouterr().err


def test_the_slow_clock_renews_one_part_a_tick_and_only_what_is_stale():
    now, done = [0.0], []
    clock = SlowClock(
        [Part(lambda: done.append("a"), 0.25), Part(lambda: done.append("b"), 0.25)],
        clock=lambda: now[0],
    )
    for _ in range(5):
        clock.tick()
    assert done == ["a", "b"]
    clock.touch()
    clock.tick()
    assert done == ["a", "b"]
    now[0] += 0.25
    for _ in range(5):
        clock.tick()
    assert sorted(done) == ["a", "a", "b", "b"]
    clock.hasten()
    clock.tick()
    assert len(done) == 5


def test_a_part_that_takes_long_is_renewed_seldom():
    now, done = [0.0], []

    def slow() -> None:
        done.append(now[0])
        now[0] += 0.3

    clock = SlowClock([Part(slow, 0.25)], clock=lambda: now[0])
    while now[0] < 20.5:
        clock.touch()
        clock.tick()
        now[0] += 0.05
    assert 2 <= len(done) <= 3
