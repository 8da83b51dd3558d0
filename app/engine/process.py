"""One engine process, from its start to its end."""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
from collections.abc import Callable
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

import msgspec

from app.engine.protocol import Command, EngineEnded, Message, Quit, decode_message, encode
from app.engine.surroundings import log_file

_SPAWN = multiprocessing.get_context("spawn")
_REAP_SECONDS = 5.0

Asked = Literal["", "quit", "kill"]
"""What this program has asked of an engine: nothing, to end, or to end at once."""

_log = logging.getLogger(__name__)


class EngineProcess:
    """A child process and the two threads that serve it; no method but `close` waits.

    `arrive` is called with every message by a thread of this object's own, last with EngineEnded.
    """

    def __init__(
        self,
        factory: str,
        arrive: Callable[[EngineProcess, Message], None],
        *,
        after: EngineProcess | None = None,
    ) -> None:
        """Starts at once, or, as two engines may not fit the memory, once `after` has ended."""
        self._factory = factory
        self._arrive = arrive
        self._commands: SimpleQueue[bytes | None] = SimpleQueue()
        self._process: SpawnProcess | None = None
        self._asked: Asked = ""
        self._gone = False
        self._reader = threading.Thread(
            target=self._live, args=(after,), name="engine client reader", daemon=True
        )
        self._reader.start()

    @property
    def alive(self) -> bool:
        """Whether it takes commands, now or once it has started: not when it was told to end."""
        return not (self._gone or self._asked)

    def send(self, command: Command) -> None:
        """Queues a command."""
        if isinstance(command, Quit):
            self._asked = self._asked or "quit"
        self._commands.put(encode(command))

    def kill(self) -> None:
        """Ends it at once, also while it is only about to start."""
        self._asked = "kill"
        if self._process is not None:
            self._process.kill()

    def close(self, timeout: float) -> None:
        """Lets it end, kills it after `timeout` seconds, and waits for its threads."""
        self.send(Quit())
        self._reader.join(timeout)
        if self._reader.is_alive():
            self.kill()
            self._reader.join(_REAP_SECONDS)

    def _live(self, after: EngineProcess | None) -> None:
        """The whole life, in a thread: start, listen, bury."""
        if after is not None:
            after._reader.join()
        try:
            connection = self._spawn()
        except OSError as error:
            self._gone = True
            self._arrive(self, _not_started(error))
            return
        writer = threading.Thread(
            target=self._write, args=(connection,), name="engine client writer", daemon=True
        )
        writer.start()
        self._read(connection)
        self._gone = True
        code = self._buried()
        self._commands.put(None)
        writer.join()
        connection.close()
        self._arrive(self, ending(code, asked=self._asked, log=log_file()))

    def _spawn(self) -> Connection:
        """Starts the child; the near end of the pipe to it."""
        _fill_standard_descriptors()
        near, far = _SPAWN.Pipe()
        process = _SPAWN.Process(
            target=enter, args=(far, self._factory), name="foretoken-engine", daemon=True
        )
        try:
            if self._asked != "kill":
                process.start()
                self._process = process
        except OSError:
            near.close()
            raise
        finally:
            far.close()
        if self._asked == "kill" and self._process is not None:  # it came while this started
            self._process.kill()
        return near

    def _read(self, connection: Connection) -> None:
        """Hands on what arrives, until the child is gone."""
        while True:
            try:
                data = connection.recv_bytes()
            except (EOFError, OSError):
                return
            try:
                message = decode_message(data)
            except msgspec.DecodeError:
                _log.exception("a message of the engine cannot be read")
                continue
            self._arrive(self, message)

    def _write(self, connection: Connection) -> None:
        """Sends what is queued; what the child no longer takes is lost with it."""
        try:
            for data in iter(self._commands.get, None):
                connection.send_bytes(data)
        except OSError as error:
            _log.info("the engine takes no more commands: %s", error)

    def _buried(self) -> int | None:
        """Waits for the end of a child whose pipe is shut; its exit code, if it was started."""
        process = self._process
        if process is None:
            return None
        process.join(_REAP_SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join(_REAP_SECONDS)
        return process.exitcode


def enter(connection: Connection, factory: str) -> None:
    """Where the child begins; the worker is named only here, for whoever imports it nears torch."""
    import_module("app.engine.worker").main(connection, factory)


def ending(code: int | None, *, asked: Asked, log: Path) -> EngineEnded:
    """Why an engine is gone, from its exit code and from what was asked of it."""
    if asked:
        how = "was closed" if asked == "quit" else "was ended at once"
        return EngineEnded(f"The engine {how}, as asked.", expected=True)
    if code == -9:
        return EngineEnded(
            "The engine was killed (signal 9): the system may have run out of memory. Close other "
            "programs, or choose a smaller model or precision, and run again.",
            expected=False,
        )
    if code is not None and code < 0:
        how = f"was ended by signal {-code}"
    else:
        how = f"ended with code {code}"
    return EngineEnded(f"The engine {how}. Run again; if it recurs, see {log}.", expected=False)


def _fill_standard_descriptors() -> None:
    """Puts the null device where a standard stream is closed: a pipe there would be overwritten."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(descriptor)


def _not_started(error: OSError) -> EngineEnded:
    return EngineEnded(
        f"The engine could not be started ({error}). Close other programs and run again.",
        expected=False,
    )
