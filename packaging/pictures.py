"""Makes the pictures of the README from a real run: python packaging/pictures.py

It starts the real window without a screen and in the system's font, runs the embedded pair with
the sample prompt on the real engine, and saves the window in both schemes, 1280 x 876 points. The
figures in the pictures are those of this machine: run it where nothing else is going on.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

# The engine's process imports this file too, and must not import Qt: what needs it does so itself.
if TYPE_CHECKING:
    from PySide6.QtGui import QFont

    from app.gui.window import MainWindow

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "resources" / "pictures"
WIDTH, HEIGHT = 1280, 876
LARGEST = 210_000
"""Bytes that a picture may have."""
FRAME_S = 0.033
PATIENCE_S = 900.0
"""Seconds after which something has failed; a first set-up fetches and converts a model."""


def main() -> int:
    """Runs once, and saves a picture for each scheme; returns the exit code."""
    os.environ.update(QT_QPA_PLATFORM="offscreen", QT_SCALE_FACTOR="1")
    sys.path.insert(0, str(ROOT))
    from PySide6.QtWidgets import QApplication

    from app import files
    from app.engine.client import EngineClient
    from app.gui.engine_link import EngineLink
    from app.gui.theme import Theme
    from app.gui.window import MainWindow
    from app.library.catalogue import load_catalogue

    application = QApplication(sys.argv[:1])
    application.setFont(_system_font())
    theme = Theme(application)
    catalogue = load_catalogue([files.shipped_catalogue()])
    window = MainWindow(EngineLink(EngineClient()), catalogue, theme)
    window.resize(WIDTH, HEIGHT)
    window.show()
    window.begin()
    window.stop_clocks()
    try:
        _until(lambda: window.action["run"].isEnabled() and window._link.pair is not None, window)
        window.run()
        _until(lambda: window.running.shown.ended, window)
        return _save_all(window)
    finally:
        window.close()


def _save_all(window: MainWindow) -> int:
    """Saves the window in both schemes; 1 if the run failed or a picture is too large."""
    record = window.record
    if record is None or record.outcome != "finished":
        print(f"The run has not finished: {record and record.message}", file=sys.stderr)
        return 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    code = 0
    for name, dress in (("dark", window.theme.go_dark), ("light", window.theme.go_light)):
        dress()
        _settle(window)
        file = FOLDER / f"playground-{name}.png"
        window.grab().save(str(file), "PNG", 0)  # as small as can be
        size = file.stat().st_size
        print(f"{file.relative_to(ROOT)}: {size / 1000:.0f} kB")
        code = code or int(size > LARGEST)
    return code


def _until(come: Callable[[], bool], window: MainWindow) -> None:
    """Lets the window work until something has come. Raises TimeoutError, or what went wrong."""
    from app.gui.engine_words import state_words

    deadline = time.monotonic() + PATIENCE_S
    while not come():
        if window._link.trouble:
            raise RuntimeError(f"{window._link.trouble.message} {window._link.trouble.remedy}")
        if time.monotonic() > deadline:
            raise TimeoutError(state_words(window._link))
        _beat(window)
        time.sleep(FRAME_S)


def _settle(window: MainWindow) -> None:
    """Lets everything be drawn as it is by now, without the caret."""
    window.page.lanes[0].setFocus()
    window.page.prompt.prompt.clearFocus()
    for _ in range(5):
        window.renew()
        _beat(window)


def _beat(window: MainWindow) -> None:
    """Does what the window's clock and the event loop would do."""
    from PySide6.QtWidgets import QApplication

    window.frame()
    QApplication.processEvents()


def _system_font() -> QFont:
    """The system's font, which the platform without a screen does not ask for by itself."""
    from PySide6.QtGui import QFontDatabase

    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
    font.setPointSizeF(9.5)
    return font


if __name__ == "__main__":
    sys.exit(main())
