"""Draws the scenes of the snapshots: python snapshot_program.py dark|light FOLDER SCENE…

The scale is Qt's own, from QT_SCALE_FACTOR. Fails if a word or a button is cut off.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]


def main() -> int:
    from PySide6.QtCore import Qt
    from PySide6.QtGui import QFont, QFontDatabase
    from PySide6.QtWidgets import QApplication
    from scripted_engine import ScriptedClient

    from app import files
    from app.gui.engine_link import EngineLink
    from app.gui.theme import Theme
    from app.gui.window import MainWindow
    from app.library.catalogue import load_catalogue

    scheme, folder, *scenes = sys.argv[1:]
    application = QApplication([])
    application.setCursorFlashTime(0)
    for file in (HERE / "fonts").glob("*.ttf"):
        QFontDatabase.addApplicationFont(str(file))
    font = QFont("Foretoken Test")
    font.setPointSizeF(9.5)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    application.setFont(font)
    theme = Theme(application)
    theme.force(Qt.ColorScheme.Dark if scheme == "dark" else Qt.ColorScheme.Light)
    for scene in scenes:
        client = ScriptedClient()
        catalogue = load_catalogue([files.shipped_catalogue()])
        window = MainWindow(EngineLink(client), catalogue, theme)
        window.resize(1280, 720)
        window.show()
        window.begin()
        window.stop_clocks()
        client.ready()
        window.frame()
        SCENES[scene](window, client)
        for _ in range(3):
            window.frame()
            window.renew()
            application.processEvents()
        window.grab().save(str(Path(folder) / f"{scene}.png"))
        cut_off = clipped(window)
        window.close()
        if cut_off:
            print(f"cut off in {scene}: {cut_off}", file=sys.stderr)
            return 1
    return 0


def clipped(window) -> list[str]:
    """The words of labels and buttons that have less room than they need."""
    from PySide6.QtWidgets import QAbstractButton, QLabel

    from app.gui.elided import Elided

    found = []
    for widget in [*window.findChildren(QLabel), *window.findChildren(QAbstractButton)]:
        may_give_way = isinstance(widget, Elided)
        if not widget.isVisible() or may_give_way or not widget.text():
            continue
        needed = widget.sizeHint()
        wraps = isinstance(widget, QLabel) and widget.wordWrap()
        height = widget.heightForWidth(widget.width()) if wraps else needed.height()
        if widget.height() < height - 1 or (not wraps and widget.width() < needed.width() - 1):
            found.append(widget.text())
    return found


def finished(window, client) -> None:
    """A whole run, with everything that can be shown inline, and the card of a token."""
    from PySide6.QtCore import QPoint, QRect
    from scripted_engine import run_of

    window.run()
    client.play(*run_of())
    window.frame()
    window.action["thrown"].trigger()
    window.action["seams"].trigger()
    lane = window.page.lanes[0].text
    place = lane.toPlainText().index("fog")
    corner = lane.viewport().mapToGlobal(QPoint(250, 14))
    window.page.card.show_span(lane.span_at(place), QRect(corner.x(), corner.y(), 8, 18))


def trouble(window, client) -> None:
    """A run with draws that broke off, because its engine was killed."""
    from scripted_engine import run_of

    from app.engine.protocol import EngineEnded

    window.page.form.choose_pair("embedded-nf4-draft")
    client.ready()
    window.frame()
    window.page.form.rows["temperature"].field.put(0.7)
    window.run()
    client.play(*run_of(method="draft-model")[:90])
    window.frame()
    client.play(EngineEnded("The engine was killed (signal 9). Run again.", expected=False))


def opening(window, client) -> None:
    """The window as it opens, while the pair is made ready."""
    from app.run.events import Progress

    window.page.form.choose_pair("embedded-nf4-draft")
    client.play(Progress("converting the model", 219e6, 538e6, "bytes"))


SCENES = {"finished": finished, "trouble": trouble, "opening": opening}

if __name__ == "__main__":
    sys.exit(main())
