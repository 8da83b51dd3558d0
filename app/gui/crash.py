"""What happens at a bug: one dialog, the log, an orderly close."""

from __future__ import annotations

import logging
import sys
import traceback
from types import TracebackType

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

_log = logging.getLogger(__name__)


def install_crash_dialog(window: QWidget) -> None:
    """From now on an exception that nothing catches is shown once, and closes the window."""
    shown = False

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        nonlocal shown
        text = "".join(traceback.format_exception(kind, error, trace))
        _log.critical("%s", text)
        print(text, file=sys.stderr)
        if not shown and not issubclass(kind, KeyboardInterrupt):
            shown = True
            crash_box(window, text).exec()
        window.close()

    sys.excepthook = hook


def crash_box(parent: QWidget, text: str) -> QMessageBox:
    """The dialog that says that there is a fault in the program."""
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Critical)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setWindowTitle("Foretoken")
    box.setText(
        "Foretoken has met a fault of its own and will close. What follows helps to mend it."
    )
    box.setDetailedText(text)
    return box
