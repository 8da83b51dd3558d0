"""Where the window stands and how large it is, kept from one start to the next."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QMargins, QObject, QRect, QSettings, QSize, Qt
from PySide6.QtGui import QGuiApplication, QScreen
from PySide6.QtWidgets import QWidget

USUAL = QSize(1440, 900)
"""How large the window opens at first, where the screen has room for it."""

FRAME = QMargins(4, 36, 4, 4)
"""What the system draws around a window, about; it is not known before the window is shown."""

_PLACE, _MAXIMISED = "window/place", "window/maximised"


class WindowPlace(QObject):
    """Puts the window where it was last, and minds where it is when it closes."""

    def __init__(self, window: QWidget, choices: Path) -> None:
        """`choices` is the file in which the window's choices are kept."""
        super().__init__(window)
        self._window = window
        self._kept = QSettings(str(choices), QSettings.Format.IniFormat)
        window.installEventFilter(self)

    def restore(self) -> None:
        """Gives the window, which is not shown yet, its place."""
        kept = self._kept.value(_PLACE)
        if isinstance(kept, QRect) and not kept.isEmpty():
            self._window.setGeometry(fitted(kept, _room(_screen_of(kept))))
        else:
            room = _room(QGuiApplication.primaryScreen())
            place = QRect(room.topLeft(), USUAL.boundedTo(room.size()))
            place.moveCenter(room.center())
            self._window.setGeometry(place)
        if self._kept.value(_MAXIMISED, False, bool) is True:
            self._window.setWindowState(Qt.WindowState.WindowMaximized)

    def eventFilter(self, _window: QObject, event: QEvent) -> bool:
        """Keeps the place of a window that is about to close."""
        if event.type() == QEvent.Type.Close:
            self._keep()
        return False

    def _keep(self) -> None:
        self._kept.setValue(_PLACE, self._window.normalGeometry())
        self._kept.setValue(_MAXIMISED, self._window.isMaximized())
        self._kept.sync()


def fitted(wanted: QRect, room: QRect) -> QRect:
    """The place nearest to the one wanted that lies within the room."""
    size = wanted.size().boundedTo(room.size())
    left = min(max(wanted.left(), room.left()), room.left() + room.width() - size.width())
    top = min(max(wanted.top(), room.top()), room.top() + room.height() - size.height())
    return QRect(left, top, size.width(), size.height())


def _room(screen: QScreen) -> QRect:
    """What a window may fill of a screen, its frame left out."""
    return screen.availableGeometry().marginsRemoved(FRAME)


def _screen_of(place: QRect) -> QScreen:
    """The screen that a place lies on; the first, if that is there no more."""
    return QGuiApplication.screenAt(place.center()) or QGuiApplication.primaryScreen()
