"""The whole record as strict JSON, out and in again."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from app.run.problems import Problem
from app.run.record import SCHEMA, RunRecord

LARGEST = 1_000_000_000
"""Bytes of the largest file that is read as a report."""


def json_parts(record: RunRecord) -> dict[str, str]:
    """The JSON report. Raises ValueError for NaN or infinity, TypeError for foreign numbers."""
    plain = msgspec.to_builtins(record)
    return {".json": json.dumps(plain, allow_nan=False, ensure_ascii=False, indent=2) + "\n"}


def read_record(path: Path) -> RunRecord:
    """The record in a JSON report. Raises Problem for any file that is not one."""
    data = _bytes(path)
    try:
        _check_schema(path, msgspec.json.decode(data, type=_Head))
        return msgspec.json.decode(data, type=RunRecord)
    except msgspec.ValidationError as error:
        remedy = "Choose a JSON report of Foretoken that nothing has edited."
        raise Problem(f"{path} is not a report of a run: {error}.", remedy) from error
    except (msgspec.DecodeError, RecursionError) as error:
        remedy = "Choose a file that a `.json` report was written to."
        raise Problem(f"{path} is not JSON: {error}.", remedy) from error


class _Head(msgspec.Struct):
    """As much of a report as tells whether it can be read."""

    schema: int


def _check_schema(path: Path, head: _Head) -> None:
    if head.schema > SCHEMA:
        message = f"{path} has layout {head.schema}; this version reads up to {SCHEMA}."
        raise Problem(message, "Open it with a newer Foretoken.")
    if head.schema < SCHEMA:
        message = f"{path} has layout {head.schema}, which this version does not read."
        raise Problem(message, "Open it with the version that wrote it.")


def _bytes(path: Path) -> bytes:
    """What is in a file, if it is one and not too large."""
    try:
        if path.stat().st_size > LARGEST:
            remedy = "Choose a report of a single run."
            raise Problem(f"{path} is over {LARGEST // 10**9} GB, too large for a report.", remedy)
        return path.read_bytes()
    except OSError as error:
        remedy = "Check the path, and that you may read the file."
        raise Problem(f"{path} cannot be read: {error.strerror or error}.", remedy) from error
