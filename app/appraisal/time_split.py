"""Where the time of a loop goes, in either lane."""

from __future__ import annotations

from statistics import median

import msgspec

from app.run.events import LaneName, Phases
from app.run.metrics import phase_seconds
from app.run.record import RunRecord

PHASES: dict[str, str] = {
    "draft": "guessing",
    "draft_prompt": "the draft's own prompt pass",
    "verify": "the target's passes",
    "decide": "sampling and the rule",
    "rest": "everything else",
}
"""The phases of a loop that add up to it, in words."""

WHOLE = "a whole loop"
"""The row of the sum."""


class SplitRow(msgspec.Struct, frozen=True):
    """One phase: milliseconds a loop by lane; None where a lane has no loop."""

    label: str
    milliseconds: tuple[float | None, ...]


def time_split(record: RunRecord) -> list[SplitRow]:
    """Decode seconds / loops by phase, medians of repetitions; a column for each lane that ran."""
    spent = [_loops(record, lane.name) for lane in record.lanes]
    names = {**PHASES, "total": WHOLE}
    return [
        SplitRow(label, tuple(_median(phases, name) for phases in spent))
        for name, label in names.items()
    ]


def _loops(record: RunRecord, lane: LaneName) -> list[Phases]:
    """The mean phases of a loop of every repetition that has one, in milliseconds."""
    found = []
    for one in filter(lambda repetition: repetition.rounds, record.repetitions(lane)):
        total, loops = phase_seconds(one), len(one.rounds)
        names = Phases.__struct_fields__
        found.append(Phases(**{name: 1000 * getattr(total, name) / loops for name in names}))
    return found


def _median(phases: list[Phases], name: str) -> float | None:
    return median(getattr(each, name) for each in phases) if phases else None
