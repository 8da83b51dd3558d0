"""How the database is laid out, and how older layouts become the present one."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from app.run.problems import Problem

APPLICATION = 0x466F7265
"""Marks the file as a history of Foretoken ("Fore")."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE runs (
            run TEXT PRIMARY KEY,
            started TEXT NOT NULL,
            moment REAL,
            pair TEXT NOT NULL,
            target TEXT NOT NULL,
            draft TEXT NOT NULL,
            method TEXT NOT NULL,
            draft_length INTEGER NOT NULL,
            temperature REAL NOT NULL,
            precision TEXT NOT NULL,
            device TEXT NOT NULL,
            prompt_start TEXT NOT NULL,
            outcome TEXT NOT NULL,
            decode_speedup REAL,
            acceptance_rate REAL,
            tokens_per_loop REAL,
            speculative_speed REAL,
            baseline_speed REAL,
            same_text INTEGER,
            words TEXT NOT NULL,
            note TEXT NOT NULL DEFAULT ''
        )""",
        "CREATE INDEX runs_by_moment ON runs (moment)",
        """CREATE TABLE records (
            run TEXT PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
            record BLOB NOT NULL
        )""",
        """CREATE TABLE tags (
            run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
            folded TEXT NOT NULL,
            tag TEXT NOT NULL,
            PRIMARY KEY (run, folded)
        )""",
    ),
    ("ALTER TABLE runs ADD COLUMN badge TEXT NOT NULL DEFAULT ''",),
)
"""Statements that lead from each layout to the next; `user_version` counts those that were done."""

LAYOUT = len(MIGRATIONS)
"""The layout that this version reads and writes."""


class Damaged(Problem):
    """The file is not a sound history: it can only be set aside."""


def settle(connection: sqlite3.Connection) -> None:
    """Sets the connection up. The file is scrubbed of what is deleted, and shrinks with it."""
    if connection.execute("PRAGMA auto_vacuum").fetchone() != (1,):
        connection.execute("PRAGMA auto_vacuum = FULL")  # which writes, so only to a new file
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA foreign_keys = ON")


def migrate(connection: sqlite3.Connection) -> None:
    """Brings the file to the present layout, whole or not at all. Raises Damaged or Problem."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = _layout(connection)
        for statements in MIGRATIONS[found:]:
            for statement in statements:
                connection.execute(statement)
        if found < LAYOUT:
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {LAYOUT}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def examine(connection: sqlite3.Connection) -> None:
    """Raises Damaged unless what is searched is whole; records are checked when they are read."""
    for table in ("runs", "tags"):
        (first,) = connection.execute(f"PRAGMA quick_check({table})").fetchone()
        if first != "ok":
            raise Damaged(f"The history is damaged: {first}.")
    if _outline(connection) != _sound_outline():
        raise Damaged("The history is damaged: its tables are not as they were made.")


def _outline(connection: sqlite3.Connection) -> list[tuple[str, str, str | None]]:
    """Every table and index, and the statement that made it."""
    return connection.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall()


def _sound_outline() -> list[tuple[str, str, str | None]]:
    """What the outline is after all migrations."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        for statements in MIGRATIONS:
            for statement in statements:
                fresh.execute(statement)
        return _outline(fresh)


def _layout(connection: sqlite3.Connection) -> int:
    """How many migrations the file has seen."""
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not tables and not layout:
        return 0
    if application != APPLICATION or layout < 1:
        raise Damaged("The file is a database of something else.")
    if layout > LAYOUT:
        message = f"The history has layout {layout}; this version reads up to {LAYOUT}."
        raise Problem(message, "Open it with a newer Foretoken.")
    return int(layout)
