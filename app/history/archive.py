"""Runs as a file: JSON Lines out, and in again from such a file or from a JSON report.

The first line of an archive is `{"foretoken_history": 1}`; each other line is one run with `record`
(as in a JSON report), `tags` and `note`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal
from uuid import uuid4

import msgspec

from app.run.problems import Problem
from app.run.record import SCHEMA, RunRecord
from app.run.stored import LARGEST, check_layout, check_size, decoded, stored_record

ARCHIVE: Literal[1] = 1
"""The version of the archive's layout."""


class Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run with what a person wrote to it."""

    record: RunRecord
    tags: tuple[str, ...] = ()
    note: str = ""


class Imported(msgspec.Struct, frozen=True):
    """What an import did."""

    added: int
    known: int
    """Runs that the history held already; they were left as they are."""


class _Title(msgspec.Struct):
    """The first line of an archive."""

    foretoken_history: int


class _Report(msgspec.Struct):
    """As much of a record as tells whether it can be read."""

    schema: int


class _Line(msgspec.Struct):
    """As much of an archive's line as tells whether it can be read."""

    record: _Report


def write_archive(runs: Iterable[Kept], path: Path, *, overwrite: bool) -> None:
    """Writes the runs to a file, whole or not at all. Raises Problem."""
    if path.exists() and not overwrite:
        raise Problem(f"{path} is there already.", "Name another file, or allow replacing it.")
    begun = path.with_name(f".foretoken-{uuid4().hex}.part")
    try:
        with open(begun, "x", encoding="utf-8", newline="") as page:
            page.write(json.dumps({"foretoken_history": ARCHIVE}) + "\n")
            page.writelines(map(_line, runs))
            page.flush()
            os.fsync(page.fileno())
        begun.replace(path)
    except OSError as error:
        remedy = "Check the disk and your rights, or name another folder."
        raise Problem(f"{path} cannot be written: {error.strerror or error}.", remedy) from error
    finally:
        begun.unlink(missing_ok=True)


def read_archive(path: Path) -> Iterator[Kept]:
    """The runs in an archive or in a JSON report. Raises Problem, which names the line."""
    try:
        with open(path, "rb") as page:
            first = _next_line(page, str(path))
            title = _title(first)
            if title is None:
                rest = page.read(LARGEST + 1 - len(first))
                yield Kept(stored_record(first + rest, str(path)))
                return
            check_layout(title.foretoken_history, ARCHIVE, where=str(path))
            number = 1
            while line := _next_line(page, f"{path}, line {(number := number + 1)},"):
                yield _kept(line, f"{path}, line {number},")
    except OSError as error:
        remedy = "Check the path, and that you may read the file."
        raise Problem(f"{path} cannot be read: {error.strerror or error}.", remedy) from error


def _line(kept: Kept) -> str:
    """One run as a line of strict JSON."""
    plain = msgspec.to_builtins(kept)
    try:
        return json.dumps(plain, allow_nan=False, ensure_ascii=False) + "\n"
    except ValueError as error:
        message = f"The run {kept.record.run} holds a figure that is no number."
        raise Problem(message, "Export the others without it.") from error


def _next_line(page: BinaryIO, where: str) -> bytes:
    """The next line; empty at the end of the file. Raises Problem for one that is too long."""
    line = page.readline(LARGEST + 1)
    check_size(line, where)
    return line


def _title(line: bytes) -> _Title | None:
    """The line as the first one of an archive; None where it is something else."""
    try:
        return msgspec.json.decode(line, type=_Title)
    except (msgspec.DecodeError, RecursionError):
        return None


def _kept(line: bytes, where: str) -> Kept:
    check_layout(decoded(line, _Line, where=where).record.schema, SCHEMA, where=where)
    return decoded(line, Kept, where=where)
