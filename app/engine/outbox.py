"""What the engine tells, sent by a thread of its own: a slow window never holds decoding up."""

from __future__ import annotations

import logging
import threading
from multiprocessing.connection import Connection
from queue import SimpleQueue

from app.engine.protocol import Message, encode

_log = logging.getLogger(__name__)


class Outbox:
    """A queue without an end in front of the pipe."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: SimpleQueue[bytes | None] = SimpleQueue()
        self._sender = threading.Thread(target=self._send, name="engine sender", daemon=True)
        self._sender.start()

    def put(self, message: Message) -> None:
        """Queues a message, already encoded: one that cannot be fails here, where it was made."""
        self._waiting.put(encode(message))

    def close(self, timeout: float) -> None:
        """Waits until all is sent, but no longer than `timeout` seconds."""
        self._waiting.put(None)
        self._sender.join(timeout)

    def _send(self) -> None:
        try:
            for data in iter(self._waiting.get, None):
                self._connection.send_bytes(data)
        except OSError as error:
            _log.info("nobody listens any more: %s", error)
