"""Folders and files that a person drops into the window."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, Signal
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QWidget


class Dropping(QObject):
    """Takes what is dropped on a window, wherever nothing else there does."""

    dropped = Signal(list)
    """Paths on this machine."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        window.setAcceptDrops(True)
        window.installEventFilter(self)

    def eventFilter(self, _window: QObject, event: QEvent) -> bool:
        """Takes paths, and leaves all else alone."""
        if event.type() not in (QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop):
            return False
        assert isinstance(event, QDropEvent)
        paths = paths_of(event.mimeData())
        if not paths:
            return False
        event.acceptProposedAction()
        if event.type() == QEvent.Type.Drop:
            self.dropped.emit(paths)
        return True


def paths_of(dropped: QMimeData) -> list[Path]:
    """The paths on this machine among what is dropped."""
    return [Path(url.toLocalFile()) for url in dropped.urls() if url.isLocalFile()]
