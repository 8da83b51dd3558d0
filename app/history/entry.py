"""A run as it stands in the list: what it was, and its headline figures.

Everything here but tags and note is derived from the record when it is written. It is an index to
search by, which `History.reindex` derives anew; the record stays the only truth.
"""

from __future__ import annotations

import math
from datetime import datetime

import msgspec

from app.history.folding import folded
from app.run.events import Outcome
from app.run.figures import FIGURES, badge
from app.run.metrics import same_text
from app.run.record import RunRecord

PROMPT_START = 200
"""Characters of the prompt that the list shows."""

SEARCHED = 4_000
"""Characters of the prompt, and of the text, that a search looks through."""


class Entry(msgspec.Struct, frozen=True):
    """One run in the list; figures without anything to divide by are null."""

    run: str
    started: str
    """Local time with its offset, ISO 8601, as the run told it."""
    pair: str
    target: str
    draft: str
    """The draft model's name; empty without one."""
    method: str
    draft_length: int
    temperature: float
    precision: str
    device: str
    prompt_start: str
    outcome: Outcome
    decode_speedup: float | None
    acceptance_rate: float | None
    tokens_per_loop: float | None
    speculative_speed: float | None
    baseline_speed: float | None
    same_text: bool | None
    """Whether both lanes wrote the same; null where they need not, or there is none to compare."""
    badge: str = ""
    """How its figures are marked if it is not lossless; also empty for runs of older versions."""
    tags: tuple[str, ...] = ()
    note: str = ""


COLUMNS = tuple(name for name in Entry.__struct_fields__ if name not in ("tags", "note"))
"""The fields that lie in the database as they are."""


def entry_of(record: RunRecord) -> Entry:
    """The entry of a record, without tags and note."""
    settings, compared = record.settings, same_text(record)
    return Entry(
        run=record.run,
        started=record.started,
        pair=settings.pair,
        target=record.target.name,
        draft=record.draft.name if record.draft else "",
        method=settings.method,
        draft_length=settings.draft_length,
        temperature=settings.sampling.temperature,
        precision=record.target.precision,
        device=record.target.device,
        prompt_start=settings.prompt[:PROMPT_START],
        outcome=record.outcome,
        decode_speedup=_figure(record, "decode_speedup"),
        acceptance_rate=_figure(record, "acceptance_rate"),
        tokens_per_loop=_figure(record, "tokens_per_loop"),
        speculative_speed=_figure(record, "speculative_decode_tokens_per_second"),
        baseline_speed=_figure(record, "baseline_decode_tokens_per_second"),
        same_text=compared.same if compared else None,
        badge=badge(record),
    )


def moment_of(record: RunRecord) -> float | None:
    """When the run began, in seconds since 1970, to sort by; None where its time is no time."""
    try:
        return datetime.fromisoformat(record.started).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def words_of(record: RunRecord) -> str:
    """All that a search looks through, folded; one line for each thing."""
    settings = record.settings
    texts = (lane.repetitions[0].text for lane in record.lanes[:1] if lane.repetitions)
    things = (
        settings.pair,
        settings.method,
        record.target.name,
        record.draft.name if record.draft else "",
        record.target.precision,
        record.target.device,
        record.environment.processor,
        record.outcome,
        record.started,
        settings.prompt[:SEARCHED],
        *(text[:SEARCHED] for text in texts),
    )
    return folded("\n".join(things))


def _figure(record: RunRecord, name: str) -> float | None:
    """The figure where it can be sorted by: neither NaN nor infinite."""
    value = FIGURES[name].value(record)
    return value if value is not None and math.isfinite(value) else None
