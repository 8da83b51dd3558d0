"""The file: opened, checked, read, written a transaction at a time, set aside when damaged."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import Any

from filelock import FileLock, Timeout

from app.history.folding import folded
from app.history.layout import Damaged, examine, migrate, settle
from app.run.problems import Problem

PATIENCE = 15.0
"""Seconds that a process waits for another one's transaction."""

_UNSOUND = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Database:
    """One connection, which any thread may use; other processes may use the file meanwhile."""

    def __init__(self, path: Path) -> None:
        """Opens the file or begins it. Raises Problem where nothing can be kept at this path."""
        self.path = path
        self.trouble = ""
        """What a person should know of the file's state; empty while all is well."""
        self._turn = RLock()
        self._file: tuple[int, int] | None = None
        self._connection = self._opened()

    def read(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Every row of a query."""
        with self._turn, _explained(self.path):
            return self._current().execute(query, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All that is written within is kept together, or not at all."""
        with self._turn, _explained(self.path):
            connection = self._current()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def scrub(self) -> None:
        """Empties the journal, so that nothing that was deleted stays behind in it."""
        with self._turn, _explained(self.path):
            self._current().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def begin_anew(self, damage: Damaged) -> None:
        """Sets the damaged file aside, says so in `trouble`, and begins an empty one."""
        with self._turn:
            self._connection.close()
            with _alone(self.path):
                self._set_aside(damage)
                self._connection = self._connected()

    def bytes(self) -> int:
        """Bytes that the history takes on the disk."""
        files = (self.path, _beside(self.path, "-wal"))
        return sum(file.stat().st_size for file in files if file.is_file())

    def close(self) -> None:
        """Ends the connection; the file stays."""
        with self._turn:
            self._connection.close()

    def _opened(self) -> sqlite3.Connection:
        with _alone(self.path):
            try:
                return self._connected()
            except Damaged as damage:
                self._set_aside(damage)
                return self._connected()

    def _connected(self) -> sqlite3.Connection:
        connection = _connected(self.path)
        self._file = _identity(self.path)
        return connection

    def _current(self) -> sqlite3.Connection:
        """The connection to the file at the path; another process may have set the old aside."""
        if _identity(self.path) != self._file:
            self._connection.close()
            self._connection = self._opened()
        return self._connection

    def _set_aside(self, damage: Damaged) -> None:
        kept = set_aside(self.path)
        self.trouble = f"{damage.message} A new history was begun; the old file is kept as {kept}."


def set_aside(path: Path) -> Path:
    """Renames a database, and its journal before it: a new one must not take up an old journal."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    endings = ("", *(f"-{number}" for number in range(2, 1000)))
    names = (f"{path.stem}-damaged-{stamp}{ending}{path.suffix}" for ending in endings)
    kept = next(path.with_name(name) for name in names if not path.with_name(name).exists())
    try:
        for ending in ("-wal", "-shm", ""):
            if _beside(path, ending).exists():
                _beside(path, ending).rename(_beside(kept, ending))
    except OSError as error:
        message = f"The damaged history {path} cannot be renamed: {error.strerror or error}."
        raise Problem(message, "Close every other Foretoken, then open it again.") from error
    return kept


def _connected(path: Path) -> sqlite3.Connection:
    """A connection to a sound file of the present layout. Raises Damaged or Problem."""
    with _explained(path, opening=True):
        connection = sqlite3.connect(
            path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            connection.text_factory = _readable
            connection.create_function("folded", 1, folded, deterministic=True)
            settle(connection)
            migrate(connection)
            examine(connection)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """No other process opens or sets the file aside meanwhile. Only its owner may read it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(_beside(path, ".lock"), timeout=PATIENCE):
            path.touch(mode=0o600, exist_ok=True)
            yield
    except Timeout as error:
        message = f"Another process has held {path} for {PATIENCE:g} s."
        raise Problem(message, "Close the other Foretoken, or wait for it.") from error
    except OSError as error:
        message = f"The history {path} cannot be opened: {error.strerror or error}."
        raise Problem(message, "Check the disk, and your rights to the folder.") from error


@contextmanager
def _explained(path: Path, *, opening: bool = False) -> Iterator[None]:
    """Turns what SQLite says into Damaged or Problem."""
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite's message quotes a damaged layout
        raise _damaged(path, error) from error
    except sqlite3.Error as error:
        if _unsound(error, path, opening=opening):
            raise _damaged(path, error) from error
        message = f"The history {path} cannot be used: {error}."
        remedy = "Check the disk, and whether another program holds the file."
        raise Problem(message, remedy) from error
    except UnicodeEncodeError as error:
        message = "Half a character cannot be kept or searched."
        raise Problem(message, "Write the text anew, in whole characters.") from error
    except OverflowError as error:
        raise Problem("A number is too large to be kept.", "Choose a smaller one.") from error


def _unsound(error: sqlite3.Error, path: Path, *, opening: bool) -> bool:
    """Whether the file itself is at fault; what is asked at its opening suits every sound one."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_READONLY:  # its first bytes forbid it, or it was moved away
        return os.access(path, os.W_OK)
    return code in _UNSOUND or (opening and code == sqlite3.SQLITE_ERROR)


def _damaged(path: Path, error: Exception) -> Damaged:
    remedy = "Export the runs that can be read, then clear the history: that begins a new one."
    return Damaged(f"The history {path} is damaged: {error}.", remedy)


def _readable(data: bytes) -> str:
    """A text in the file, damaged or not: one bad character must not hide the list."""
    return data.decode("utf-8", "replace")


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells this file from another one at the same path; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)
