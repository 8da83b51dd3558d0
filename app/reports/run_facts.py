"""What is needed to repeat a run, by dotted names, and what was not held equal: a row a fact."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from app.elsewhere.programs import recipes
from app.elsewhere.setup import Recipe
from app.reports.conditions import not_held_equal
from app.run.figures import standing
from app.run.flagged import cautions
from app.run.record import RunRecord

Fact = tuple[str, str | int | float]
"""A name and its value: a text or a number as it is, and JSON for all else (also null, true)."""

FACT_COLUMNS = ("name", "value")

NOT_HELD_EQUAL = "not held equal"
"""The name of every fact that says how the lanes differed, or may have."""

_PARTS = ("settings", "environment", "target", "draft")
_ALONE = ("prompt_ids", "end_ids", "lossless", "draft_resident", "peak_bytes", "draft_peak_bytes")
_ENDED = ("outcome", "message", "remedy")


def run_facts(record: RunRecord) -> Iterator[Fact]:
    """Everything that a run's figures depend on; names of the last kinds can repeat."""
    yield "run", record.run
    yield "started", record.started
    yield "schema", record.schema
    for part in (*_PARTS, *_ALONE, *_ENDED):
        yield from facts(part, getattr(record, part))
    yield "standing", standing(record)
    for lane in record.lanes:
        for one in lane.repetitions:
            yield from facts(f"{lane.name}.{one.at.repetition}.finish", one.finish)
    yield from ((NOT_HELD_EQUAL, line) for line in not_held_equal(record))
    yield from (("caution", flag.message) for flag in cautions(record))
    yield from (("note", note) for note in record.notes)
    yield from elsewhere_facts(recipes(record))


def elsewhere_facts(found: Iterable[Recipe]) -> Iterator[Fact]:
    """A set-up for other programs, and what is not the same there."""
    for told in found:
        yield f"elsewhere.{told.program}", told.text
        yield f"elsewhere.{told.program}.release", told.release
        yield from ((f"elsewhere.{told.program}.not carried", line) for line in told.not_carried)


def facts(name: str, value: object) -> Iterator[Fact]:
    """The facts of a value: one, or for a struct those of its fields (`settings.draft_length`)."""
    if isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from facts(f"{name}.{field}", getattr(value, field))
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield name, value
    else:
        plain: Any = msgspec.to_builtins(value, str_keys=True)
        yield name, json.dumps(plain, allow_nan=False, ensure_ascii=False)
