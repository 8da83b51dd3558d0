"""The whole record as strict JSON, out and in again."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from app.elsewhere.programs import recipes
from app.run.problems import Problem
from app.run.record import RunRecord
from app.run.stored import LARGEST, stored_record


def json_parts(record: RunRecord) -> dict[str, str]:
    """The JSON report: the record, and its set-up for other programs.

    Raises ValueError for NaN or infinity, TypeError for foreign numbers.
    """
    plain = {**msgspec.to_builtins(record), "elsewhere": msgspec.to_builtins(recipes(record))}
    return {".json": json.dumps(plain, allow_nan=False, ensure_ascii=False, indent=2) + "\n"}


def read_record(path: Path) -> RunRecord:
    """The record in a JSON report. Raises Problem for any file that is not one."""
    return stored_record(report_bytes(path), str(path))


def report_bytes(path: Path) -> bytes:
    """What is in a file, if it is one and not too large; Problem else."""
    try:
        if path.stat().st_size > LARGEST:
            remedy = "Choose a report of a single run."
            raise Problem(f"{path} is over {LARGEST // 10**9} GB, too large for a report.", remedy)
        return path.read_bytes()
    except OSError as error:
        remedy = "Check the path, and that you may read the file."
        raise Problem(f"{path} cannot be read: {error.strerror or error}.", remedy) from error
