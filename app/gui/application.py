"""Opens the window: builds the objects and hands them on."""

from __future__ import annotations

import signal
import sys

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication

from app import files
from app.engine.client import EngineClient
from app.gui.crash import begin_log, install_crash_dialog
from app.gui.engine_link import EngineLink
from app.gui.one_window import OneWindow
from app.gui.theme import Theme
from app.gui.window import MainWindow
from app.gui.window_place import WindowPlace
from app.library.catalogue import load_catalogue


def main() -> int:
    """Opens the window and stays until it is closed; returns the exit code."""
    begin_log(files.log_folder() / "window.log")
    application = QApplication(sys.argv[:1])
    application.setApplicationName("Foretoken")
    application.setDesktopFileName("foretoken")
    application.setWindowIcon(QIcon(str(files.resource("icons/foretoken.svg"))))
    place = OneWindow(files.data_folder(), application)
    if not place.take():
        print("Foretoken is open already; its window is brought to the front.")
        return 0
    theme = Theme(application, choices=files.window_choices())
    catalogue = load_catalogue([files.shipped_catalogue(), files.user_catalogue()])
    window = MainWindow(EngineLink(EngineClient()), catalogue, theme, history=files.history_file())
    WindowPlace(window, files.window_choices()).restore()
    place.shows_with(lambda: bring_to_front(application, window))
    try:
        return show(application, window)
    finally:
        place.leave()


def bring_to_front(application: QApplication, window: MainWindow) -> None:
    """Puts the window before all others; where the system forbids it, its entry asks for a look."""
    window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
    window.show()
    window.raise_()
    window.activateWindow()
    application.alert(window)


def show(application: QApplication, window: MainWindow) -> int:
    """Shows the window, starts its engine once it is up, and ends in order, Ctrl+C included."""
    # The frame clock gives Python its turn, so that the handler runs within a frame; it may run in
    # the middle of a paint, which a window must not be closed in.
    before = signal.signal(signal.SIGINT, lambda *_: QTimer.singleShot(0, window.close))
    faults = install_crash_dialog(window)
    window.show()
    QTimer.singleShot(0, window.begin)
    try:
        return application.exec() or int(bool(faults))
    finally:
        window.shut_down()
        signal.signal(signal.SIGINT, before)
