"""The set-up for other programs that a JSON report tells, of a run or of a bench."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.elsewhere.programs import recipes
from app.elsewhere.setup import Recipe
from app.reports.json_report import report_bytes
from app.run.problems import Problem
from app.run.stored import stored_record


class _Way(msgspec.Struct):
    method: str
    draft_length: int


class _Bench(msgspec.Struct):
    """As much of a bench as tells that it is one, and the set-up of its best way."""

    ways: tuple[_Way, ...]
    best: _Way
    elsewhere: tuple[Recipe, ...] | None = None


def told_elsewhere(path: Path) -> tuple[Recipe, ...]:
    """A run's set-up for every program; of a bench that of its best way, as it was written then.

    Raises Problem for a file that is neither.
    """
    data = report_bytes(path)
    bench = _bench(data)
    if bench is None:
        return recipes(stored_record(data, str(path)))
    if bench.elsewhere is None:
        raise Problem(
            f"{path} is a bench that an earlier version has written: it holds no set-up for other "
            "programs.",
            f"Its best way was {bench.best.method} with draft length {bench.best.draft_length}: "
            "give a JSON report of a run with these settings, or write the bench again.",
        )
    return bench.elsewhere


def _bench(data: bytes) -> _Bench | None:
    """The bench that JSON holds; None for anything else."""
    try:
        return msgspec.json.decode(data, type=_Bench)
    except (msgspec.MsgspecError, RecursionError):
        return None
