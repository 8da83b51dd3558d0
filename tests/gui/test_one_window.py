"""A second start finds the first window, brings it to the front and opens none."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from PySide6.QtCore import Qt
from PySide6.QtNetwork import QLocalServer

from app.gui import one_window
from app.gui.application import bring_to_front
from app.gui.one_window import OneWindow

TAKES = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from PySide6.QtCore import QCoreApplication
    from app.gui.one_window import OneWindow
    application = QCoreApplication([])
    print(OneWindow(Path(sys.argv[1])).take())
    """
)


@pytest.fixture
def first(application, tmp_path):
    place = OneWindow(tmp_path)
    assert place.take()
    yield place
    place.leave()


def start_again(qtbot, folder) -> str:
    """What another process is told; this one's event loop goes on meanwhile, as a window's does."""
    process = subprocess.Popen(
        [sys.executable, "-c", TAKES, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    qtbot.waitUntil(lambda: process.poll() is not None, timeout=60_000)
    told, _ = process.communicate()
    return told.strip()


def test_a_second_start_shows_the_first_window_and_opens_none(first, qtbot, tmp_path):
    shown = []
    first.shows_with(lambda: shown.append(True))
    assert start_again(qtbot, tmp_path) == "False"
    assert shown == [True]
    assert start_again(qtbot, tmp_path) == "False"
    assert shown == [True, True]


def test_another_persons_folder_has_a_window_of_its_own(first, qtbot, tmp_path):
    assert start_again(qtbot, tmp_path / "another") == "True"


def test_when_the_window_is_closed_the_next_start_opens_one(first, qtbot, tmp_path):
    first.leave()
    assert start_again(qtbot, tmp_path) == "True"


def test_a_window_that_hangs_does_not_bar_another(first, monkeypatch, tmp_path):
    # This test's own event loop stands still while it waits: nobody answers.
    monkeypatch.setattr(one_window, "_PATIENCE_MS", 100)
    second = OneWindow(tmp_path)
    assert second.take()
    second.leave()


@pytest.mark.skipif(os.name == "nt", reason="a pipe of Windows ends with its process")
def test_what_a_killed_window_left_behind_is_no_window(application, tmp_path):
    place = OneWindow(tmp_path)
    killed = "import os, sys; from pathlib import Path; from PySide6.QtCore import QCoreApplication"
    killed += "; from app.gui.one_window import OneWindow; a = QCoreApplication([])"
    killed += "; assert OneWindow(Path(sys.argv[1])).take(); os._exit(9)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", killed, str(tmp_path)], env=environment)
    assert ended.returncode == 9
    assert place.take()
    place.leave()


def test_only_the_person_may_reach_it(first):
    assert first._server.socketOptions() == QLocalServer.SocketOption.UserAccessOption


def test_a_minimised_window_comes_back(application, window):
    window.showMinimized()
    assert window.isMinimized()
    bring_to_front(application, window)
    assert window.isVisible()
    assert not window.windowState() & Qt.WindowState.WindowMinimized
