"""The texts that runs of suffix decoding have written, kept so that later runs can copy from them.

By target, the oldest first. Of a prompt nothing is kept but its hash, which tells that a run
repeats it.
"""

from __future__ import annotations

import hashlib
import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.run.problems import Problem

PATIENCE = 15.0
"""Seconds that a process waits for another one's transaction."""
MOST_TOKENS = 500_000
"""Tokens that a run counts, at most: of the newest texts that are no more together."""
MOST_BYTES = 200_000_000
"""Memory that counting may take: texts that repeat each other take ten times as much a token as
others, so that tokens alone do not bound it. Beyond it the older half of the texts goes."""
IN_MEMORY = (
    f"A run that copies from them counts the newest, in at most {MOST_BYTES // 10**6} MB of memory."
)

_LAYOUT = """
CREATE TABLE IF NOT EXISTS texts (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    target TEXT NOT NULL,
    prompt BLOB NOT NULL,
    tokens INTEGER NOT NULL,
    ids BLOB NOT NULL
)
"""
_UNSOUND = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@dataclass(frozen=True, slots=True)
class KeptText:
    """One text."""

    number: int
    """Texts are numbered in the order in which they came, whatever their targets."""
    prompt: bytes
    """The hash of the prompt that it was written behind."""
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KeptSize:
    """What is kept for one target."""

    target: str
    texts: int
    tokens: int


class KeptTexts:
    """The file of texts. Every method raises Problem where the file cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lengths(self, target: str) -> dict[int, int]:
        """The tokens of each of a target's texts by its number, the oldest first."""
        with self._opened() as connection:
            rows = connection.execute(
                "SELECT number, tokens FROM texts WHERE target = ? ORDER BY number", (target,)
            )
            return dict(rows.fetchall())

    def texts(self, target: str, *, since: int) -> list[KeptText]:
        """A target's texts from this number on, the oldest first."""
        with self._opened() as connection:
            rows = connection.execute(
                "SELECT number, prompt, ids FROM texts WHERE target = ? AND number >= ? "
                "ORDER BY number",
                (target, since),
            )
            return [KeptText(number, prompt, _ids(data)) for number, prompt, data in rows]

    def add(self, target: str, *, prompt: Sequence[int], ids: Sequence[int], most: int) -> None:
        """Keeps a text; beyond so many of its target the oldest are let go."""
        with self._opened() as connection, connection:
            connection.execute(
                "INSERT INTO texts (target, prompt, tokens, ids) VALUES (?, ?, ?, ?)",
                (target, prompt_hash(prompt), len(ids), array("i", ids).tobytes()),
            )
            connection.execute(
                "DELETE FROM texts WHERE target = ? AND number NOT IN "
                "(SELECT number FROM texts WHERE target = ? ORDER BY number DESC LIMIT ?)",
                (target, target, most),
            )

    def sizes(self) -> list[KeptSize]:
        """What is kept, by target; nothing where nothing is."""
        if not self.path.exists():
            return []
        with self._opened() as connection:
            rows = connection.execute(
                "SELECT target, COUNT(*), SUM(tokens) FROM texts GROUP BY target ORDER BY target"
            )
            return [KeptSize(*row) for row in rows]

    def clear(self) -> None:
        """Lets all texts go, and leaves nothing of them in the file; also of a damaged one."""
        try:
            with self._opened() as connection:
                with connection:
                    connection.execute("DELETE FROM texts")
                connection.execute("VACUUM")
        except Damaged:
            self.path.unlink(missing_ok=True)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A connection; what goes wrong with it becomes a Problem."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=PATIENCE)) as connection:
                connection.execute("PRAGMA secure_delete = ON")
                connection.execute(_LAYOUT)
                yield connection
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _UNSOUND:
                raise Damaged(
                    f"The texts that are kept for suffix decoding are damaged ({self.path}).",
                    "Let them go: `foretoken texts --clear`, or in the window's menu.",
                ) from error
            raise self._unusable(str(error)) from error
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from error

    def _unusable(self, reason: str) -> Problem:
        message = f"The texts kept for suffix decoding ({self.path}) cannot be used: {reason}."
        return Problem(message, "Check the disk, and your rights to the folder.")


class Damaged(Problem):
    """The file is no sound database."""


def prompt_hash(prompt: Sequence[int]) -> bytes:
    """What tells a prompt from others, without saying what it is."""
    return hashlib.sha256(array("i", prompt).tobytes()).digest()


def _ids(data: bytes) -> tuple[int, ...]:
    found = array("i")
    found.frombytes(data)
    return tuple(found)
