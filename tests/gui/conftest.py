"""One application, one font, and a check that no test leaves anything running or warned of."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"

# What stands beside the tests is found by name.
sys.path.append(str(Path(__file__).parent))

import psutil
import pytest
from PySide6.QtCore import QObject, Qt, QTimer, qInstallMessageHandler
from PySide6.QtGui import QFont, QFontDatabase
from PySide6.QtWidgets import QApplication
from scripted_engine import ScriptedClient

from app import files
from app.gui.engine_link import EngineLink
from app.gui.theme import Theme
from app.gui.window import MainWindow
from app.library.catalogue import Catalogue, load_catalogue

FONTS = Path(__file__).parent / "fonts"


@pytest.fixture(scope="session")
def qapp_args() -> list[str]:
    return ["foretoken"]


@pytest.fixture(scope="session")
def application(qapp: QApplication) -> QApplication:
    """The application, drawing with the font that ships with the tests."""
    for file in FONTS.glob("*.ttf"):
        assert QFontDatabase.addApplicationFont(str(file)) >= 0
    font = QFont("Foretoken Test")
    font.setPointSizeF(9.5)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    qapp.setFont(font)
    gc.freeze()  # what is here now stays; looking through it after every test would take long
    return qapp


@pytest.fixture(scope="session")
def theme(application: QApplication) -> Theme:
    """The application's one theme; each test begins dark."""
    return Theme(application)


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    """What ships with the program."""
    return load_catalogue([files.shipped_catalogue()])


@pytest.fixture(autouse=True)
def nothing_left(application: QApplication) -> Iterator[None]:
    """Fails a test at which Qt warned, or which left a thread, a running timer or a process."""
    said: list[str] = []

    def hear(_kind, _where, text: str) -> None:
        # The offscreen platform says of some calls that it cannot do them; real ones can.
        if not text.startswith("This plugin does not support"):
            said.append(text)

    before = qInstallMessageHandler(hear)
    threads = set(threading.enumerate())
    processes = set(psutil.Process().children(recursive=True))
    yield
    application.processEvents()
    # Here and now, lest a later test's worker thread be the one that destroys what Qt made here.
    gc.collect()
    qInstallMessageHandler(before)
    left = [timer for timer in _timers(application) if timer.isActive()]
    assert said == []
    assert left == []
    assert set(threading.enumerate()) <= threads
    assert set(psutil.Process().children(recursive=True)) <= processes


@pytest.fixture
def client() -> ScriptedClient:
    return ScriptedClient()


@pytest.fixture
def window(
    application: QApplication,
    client: ScriptedClient,
    catalogue: Catalogue,
    theme: Theme,
    tmp_path: Path,
) -> Iterator[MainWindow]:
    """A dark window on a scripted engine that is ready; tests call its clock themselves."""
    theme.force(Qt.ColorScheme.Dark)
    made = MainWindow(EngineLink(client), catalogue, theme, history=tmp_path / "history.sqlite")
    made.show()
    made.begin()
    made.stop_clocks()
    client.ready()
    made.frame()
    yield made
    made.close()
    made.deleteLater()
    QApplication.sendPostedEvents(None, 52)  # QEvent.DeferredDelete
    QApplication.processEvents()


@pytest.fixture
def play(window: MainWindow, client: ScriptedClient) -> Callable[..., None]:
    """Lets messages arrive, and the window take them in with both of its clocks."""

    def played(*messages) -> None:
        client.play(*messages)
        window.frame()
        while any(lane.text.behind for lane in window.page.lanes):
            window.frame()
        window.renew()
        QApplication.processEvents()

    return played


def _timers(application: QApplication) -> list[QTimer]:
    roots: list[QObject] = [application, *application.topLevelWidgets()]
    return [timer for root in roots for timer in root.findChildren(QTimer)]
