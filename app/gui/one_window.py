"""One window a person: a second start brings the first one's window to the front."""

from __future__ import annotations

import ctypes
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject
from PySide6.QtNetwork import QLocalServer, QLocalSocket

_PATIENCE_MS = 5000
"""How long a window that is there may take to answer; one that hangs does not bar another."""

_ANSWER = b"shown"


class OneWindow(QObject):
    """Holds the place of the window of one settings folder, or finds that it is taken."""

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        """`folder` is the person's own; windows with other folders don't concern each other."""
        super().__init__(parent)
        self._folder = folder
        digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
        self._name = f"foretoken-{digest}"
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._show: Callable[[], None] | None = None
        self._server.newConnection.connect(self._answer)

    def take(self) -> bool:
        """Takes the place; False if a window holds it, which has then been brought to the front."""
        self._folder.mkdir(parents=True, exist_ok=True)
        # Two starts in the same moment: the second waits until the first one listens.
        lock = QLockFile(str(self._folder / "window.lock"))
        lock.tryLock(_PATIENCE_MS)
        try:
            if self._is_shown():
                return False
            QLocalServer.removeServer(self._name)  # what a window that was killed has left
            self._server.listen(self._name)
            return True
        finally:
            lock.unlock()

    def shows_with(self, show: Callable[[], None]) -> None:
        """From now on `show` is called whenever the program is started again."""
        self._show = show

    def leave(self) -> None:
        """Gives the place up: the next start opens a window of its own."""
        self._server.close()

    def _is_shown(self) -> bool:
        """Whether a window has the place and says that it shows itself."""
        socket = QLocalSocket()
        if sys.platform == "win32":  # only who was started last may let another window come forward
            ctypes.windll.user32.AllowSetForegroundWindow(-1)
        socket.connectToServer(self._name)
        if not socket.waitForConnected(_PATIENCE_MS):
            return False
        answered = socket.waitForReadyRead(_PATIENCE_MS)
        return answered and bytes(socket.readAll().data()) == _ANSWER

    def _answer(self) -> None:
        while self._server.hasPendingConnections():
            socket = self._server.nextPendingConnection()
            socket.disconnected.connect(socket.deleteLater)
            if self._show is not None:
                self._show()
            socket.write(_ANSWER)
            socket.flush()
            socket.disconnectFromServer()
