"""Runs as a file: JSON Lines out, and in again from such a file or from a JSON report.

The first line of an archive is `{"foretoken_history": 1}`; each other line is one run with `record`
(as in a JSON report), `tags` and `note`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar
from uuid import uuid4

import msgspec

from app.history.packing import LARGEST
from app.run.problems import Problem
from app.run.record import SCHEMA, RunRecord

ARCHIVE: Literal[1] = 1
"""The version of the archive's layout."""

_Wanted = TypeVar("_Wanted")


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
                yield Kept(_report(first + page.read(LARGEST + 1 - len(first)), str(path)))
                return
            _check_version(title.foretoken_history, ARCHIVE, where=str(path))
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
    if len(line) > LARGEST:
        raise _too_large(where)
    return line


def _title(line: bytes) -> _Title | None:
    """The line as the first one of an archive; None where it is something else."""
    try:
        return msgspec.json.decode(line, type=_Title)
    except (msgspec.DecodeError, RecursionError):
        return None


def _kept(line: bytes, where: str) -> Kept:
    _check_version(_decoded(line, _Line, where=where).record.schema, SCHEMA, where=where)
    return _decoded(line, Kept, where=where)


def _report(data: bytes, where: str) -> RunRecord:
    if len(data) > LARGEST:
        raise _too_large(where)
    _check_version(_decoded(data, _Report, where=where).schema, SCHEMA, where=where)
    return _decoded(data, RunRecord, where=where)


def _decoded(data: bytes, kind: type[_Wanted], *, where: str) -> _Wanted:
    """The JSON as a struct of this kind. NaN and infinity are no JSON. Raises Problem."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        remedy = "Choose a file that Foretoken has written and nothing has edited."
        raise Problem(f"{where} is not a run: {error}.", remedy) from error
    except (msgspec.DecodeError, RecursionError) as error:
        remedy = "Choose a JSON report, or a file that the history was exported to."
        raise Problem(f"{where} is not JSON: {error}.", remedy) from error


def _check_version(found: int, known: int, *, where: str) -> None:
    if found > known:
        message = f"{where} has layout {found}; this version reads up to {known}."
        raise Problem(message, "Open it with a newer Foretoken.")
    if found < known:
        message = f"{where} has layout {found}, which this version does not read."
        raise Problem(message, "Open it with the version that wrote it.")


def _too_large(where: str) -> Problem:
    message = f"{where} is over {LARGEST // 10**9} GB, too large for a run."
    return Problem(message, "Choose a file that Foretoken has written.")
