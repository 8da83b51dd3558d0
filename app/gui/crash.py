"""What happens at a bug: one dialog, the log, an orderly close."""

from __future__ import annotations

import logging
import sys
import traceback
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

_log = logging.getLogger(__name__)


def begin_log(file: Path) -> None:
    """Sends what the window has to say to this file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        filename=file,
        encoding="utf-8",
        level=logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )


def install_crash_dialog(window: QWidget) -> list[str]:
    """From now on an exception that nothing catches is shown once, and closes the window.

    What was caught is in the list that this returns, in the words of the traceback.
    """
    caught: list[str] = []

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        text = "".join(traceback.format_exception(kind, error, trace))
        caught.append(text)
        _log.critical("%s", text)
        print(text, file=sys.stderr)
        if len(caught) == 1 and not issubclass(kind, KeyboardInterrupt):
            crash_box(window, text).exec()
        window.close()

    sys.excepthook = hook
    return caught


def crash_box(parent: QWidget, text: str) -> QMessageBox:
    """The dialog that says that there is a fault in the program."""
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Critical)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setWindowTitle("Foretoken")
    box.setText("Foretoken has met a fault of its own and will close. The details help to mend it.")
    box.setDetailedText(text)
    return box
