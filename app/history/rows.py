"""What stands in the tables, row by row: each function runs inside a transaction of its caller."""

from __future__ import annotations

import sqlite3
from typing import Any

from app.history.entry import COLUMNS, Entry, entry_of, moment_of, words_of
from app.history.folding import folded
from app.run.problems import Problem
from app.run.record import RunRecord

LONGEST_TAG = 60
"""Characters of the longest tag."""

LONGEST_NOTE = 100_000
"""Characters of the longest note."""

_WRITTEN = (*COLUMNS, "moment", "words")
_PUT = (
    f"INSERT INTO runs ({', '.join(_WRITTEN)}) VALUES ({', '.join('?' for _ in _WRITTEN)}) "
    f"ON CONFLICT (run) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _WRITTEN)}"
)

ENTRY_COLUMNS = ", ".join((*COLUMNS, "note"))
"""What `entry` takes, in its order."""


def put(connection: sqlite3.Connection, record: RunRecord, *, data: bytes) -> None:
    """Writes a run and its index, in the place of what there was of it."""
    put_index(connection, record)
    connection.execute(
        "INSERT INTO records (run, record) VALUES (?, ?) "
        "ON CONFLICT (run) DO UPDATE SET record = excluded.record",
        (record.run, data),
    )


def put_index(connection: sqlite3.Connection, record: RunRecord) -> None:
    """Writes what a run is searched by, as its record gives it."""
    entry = entry_of(record)
    columns = (getattr(entry, name) for name in COLUMNS)
    connection.execute(_PUT, (*columns, moment_of(record), words_of(record)))


def put_tag(connection: sqlite3.Connection, run: str, *, tag: str) -> None:
    """Gives a run a tag, unless it has it in some writing."""
    values = (run, folded(tag), tag)
    connection.execute("INSERT OR IGNORE INTO tags (run, folded, tag) VALUES (?, ?, ?)", values)


def put_note(connection: sqlite3.Connection, run: str, *, text: str) -> None:
    """Writes the note of a run."""
    connection.execute("UPDATE runs SET note = ? WHERE run = ?", (text, run))


def holds(connection: sqlite3.Connection, run: str) -> bool:
    """Whether the run is there."""
    return connection.execute("SELECT 1 FROM runs WHERE run = ?", (run,)).fetchone() is not None


def entry(row: tuple[Any, ...], tags: tuple[str, ...]) -> Entry:
    """The entry in a row of `ENTRY_COLUMNS`."""
    fields = dict(zip((*COLUMNS, "note"), row, strict=True))
    same = fields["same_text"]
    return Entry(**{**fields, "same_text": None if same is None else bool(same), "tags": tags})


def checked_tag(tag: str) -> str:
    """The tag without the blanks around it. Raises Problem for one that cannot be shown."""
    name = tag.strip()
    if not name or len(name) > LONGEST_TAG or not name.isprintable():
        message = f"A tag is 1 to {LONGEST_TAG} characters of one line; this is {name[:80]!r}."
        raise Problem(message, "Write a shorter word; longer text fits in the note.")
    return name


def checked_note(text: str) -> str:
    """The note. Raises Problem for one that is too long."""
    if len(text) > LONGEST_NOTE:
        message = f"The note has {len(text)} characters, over {LONGEST_NOTE}."
        raise Problem(message, "Keep what is so long in a file, and note its name.")
    return text
