"""The window opens within its screen, and where and as large as it was closed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from PySide6.QtCore import QEvent, QRect, QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QWidget

from app.gui import window_place
from app.gui.colours import DARK, LIGHT
from app.gui.theme import Theme
from app.gui.window_place import FRAME, WindowPlace, fitted

SMALL, LARGE = QRect(0, 0, 1366, 768), QRect(0, 27, 2560, 1413)


@pytest.fixture
def opened(application, tmp_path, monkeypatch):
    """Opens a window on a screen with this room."""
    made: list[QWidget] = []

    def open_on(screen: QRect) -> QWidget:
        room = screen.marginsRemoved(FRAME)
        monkeypatch.setattr(window_place, "_room", lambda _screen: room)
        window = QWidget()
        made.append(window)
        WindowPlace(window, tmp_path / "window.ini").restore()
        return window

    yield open_on
    for window in made:
        window.close()
        window.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def test_the_first_window_is_as_large_as_usual_where_there_is_room(opened):
    window = opened(LARGE)
    assert window.size() == QSize(1440, 900)
    assert LARGE.contains(window.geometry())


def test_the_first_window_lies_within_a_small_screen_with_its_frame(opened):
    window = opened(SMALL)
    assert SMALL.contains(window.geometry().marginsAdded(FRAME))
    assert window.width() == 1366 - 8


def test_size_and_place_are_kept(opened):
    window = opened(LARGE)
    window.setGeometry(300, 200, 1100, 640)
    window.close()
    assert opened(LARGE).geometry() == QRect(300, 200, 1100, 640)


def test_what_was_kept_of_a_larger_screen_fits_a_smaller_one(opened):
    window = opened(LARGE)
    window.setGeometry(1000, 400, 1500, 1000)
    window.close()
    assert SMALL.contains(opened(SMALL).geometry().marginsAdded(FRAME))


def test_a_maximised_window_is_so_again_and_keeps_its_other_size(opened):
    window = opened(LARGE)
    window.setGeometry(300, 200, 1100, 640)
    window.show()
    window.showMaximized()
    QApplication.processEvents()
    window.close()
    again = opened(LARGE)
    assert again.windowState() & Qt.WindowState.WindowMaximized
    again.setWindowState(Qt.WindowState.WindowNoState)
    assert again.size() == QSize(1100, 640)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (QRect(10, 10, 100, 100), QRect(10, 10, 100, 100)),
        (QRect(-50, 900, 100, 100), QRect(0, 500, 100, 100)),
        (QRect(300, 300, 2000, 2000), QRect(0, 0, 800, 600)),
    ],
)
def test_the_nearest_place_within_the_room(wanted, found):
    assert fitted(wanted, QRect(0, 0, 800, 600)) == found


def test_the_smallest_window_fits_a_small_screen(window):
    assert window.minimumWidth() <= 960
    assert window.minimumHeight() <= 600
    window.resize(960, 600)
    assert (window.width(), window.height()) == (960, 600)


def ticked(window) -> list[str]:
    names = ("scheme_system", "scheme_dark", "scheme_light")
    actions: list[QAction] = [window.action[name] for name in names]
    return [action.objectName() for action in actions if action.isChecked()]


def test_the_menu_ticks_the_scheme_in_force(window, theme):
    assert ticked(window) == ["scheme_dark"]
    window.action["scheme_light"].trigger()
    assert ticked(window) == ["scheme_light"]
    assert theme.colours is LIGHT
    window.action["scheme_system"].trigger()
    assert ticked(window) == ["scheme_system"]
    theme.force(Qt.ColorScheme.Dark)
    assert ticked(window) == ["scheme_dark"]
    window.action["scheme_dark"].trigger()
    assert ticked(window) == ["scheme_dark"]


def test_the_chosen_scheme_is_kept(application, theme, tmp_path):
    choices = tmp_path / "window.ini"
    for go, forced, colours in (
        ("go_dark", Qt.ColorScheme.Dark, DARK),
        ("go_light", Qt.ColorScheme.Light, LIGHT),
        ("follow_system", None, LIGHT),  # the offscreen platform knows no scheme
    ):
        getattr(Theme(application, choices=choices), go)()
        again = Theme(application, choices=choices)
        assert (again.forced, again.colours) == (forced, colours)
    for made in application.findChildren(Theme):
        if made is not theme:
            made.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    theme._dress()


STARTS = textwrap.dedent(
    """
    import sys
    from app.gui import application

    def show(app, window):
        window.show()
        place, scheme = window.geometry(), window.theme.forced
        print(place.width(), place.height(), scheme.name if scheme else "-")
        window.resize(1000, 620)
        window.action["scheme_dark"].trigger()
        window.close()
        return 0

    application.show = show
    sys.exit(application.main())
    """
)


def test_a_second_start_of_the_program_is_as_the_first_was_left(tmp_path):
    screen = {"QT_QPA_PLATFORM": "offscreen", "FORETOKEN_HOME": str(tmp_path)}
    environment = {**os.environ, **screen, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", STARTS]
    told = [
        subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        for _ in range(2)
    ]
    # The offscreen screen has 800 × 800 points, and the window is at least 960 wide.
    assert [one.stdout.split() for one in told] == [["960", "760", "-"], ["960", "620", "Dark"]], (
        told
    )
