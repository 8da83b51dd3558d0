"""Runs as JSON that comes from a file: decoded strictly, or refused in a sentence."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from app.run.problems import Problem
from app.run.record import SCHEMA, RunRecord

LARGEST = 1_000_000_000
"""Bytes of the largest record that is kept or read."""

_Wanted = TypeVar("_Wanted")


class _Head(msgspec.Struct):
    """As much of a record as tells whether it can be read."""

    schema: int


class _Report(RunRecord, forbid_unknown_fields=True):
    """A record as a report holds it."""

    elsewhere: msgspec.Raw = msgspec.Raw()
    """Its set-up for other programs, which follows from the record and so is not read."""


def stored_record(data: bytes, where: str) -> RunRecord:
    """The record that JSON holds; `where` names the place it is from. Raises Problem."""
    check_size(data, where)
    check_layout(decoded(data, _Head, where=where).schema, SCHEMA, where=where)
    report = decoded(data, _Report, where=where)
    return RunRecord(**{name: getattr(report, name) for name in RunRecord.__struct_fields__})


def decoded(data: bytes, kind: type[_Wanted], *, where: str) -> _Wanted:
    """The JSON as a struct of this kind. NaN and infinity are no JSON. Raises Problem."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        remedy = "Choose a file that Foretoken has written and nothing has edited."
        raise Problem(f"{where} is not a report of a run: {error}.", remedy) from error
    except (msgspec.DecodeError, RecursionError) as error:
        remedy = "Choose a `.json` report, or a file that the history was exported to."
        raise Problem(f"{where} is not JSON: {error}.", remedy) from error


def check_layout(found: int, known: int, *, where: str) -> None:
    """Raises Problem for a layout of another version."""
    if found > known:
        message = f"{where} has layout {found}; this version reads up to {known}."
        raise Problem(message, "Open it with a newer Foretoken.")
    if found < known:
        message = f"{where} has layout {found}, which this version does not read."
        raise Problem(message, "Open it with the version that wrote it.")


def check_size(data: bytes, where: str) -> None:
    """Raises Problem for more bytes than a run can have."""
    if len(data) > LARGEST:
        message = f"{where} is over {LARGEST // 10**9} GB, too large for a run."
        raise Problem(message, "Choose a file that Foretoken has written.")
