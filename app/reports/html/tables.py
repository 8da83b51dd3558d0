"""The tables of numbers: figures, tokens, time, and every repetition."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

import msgspec

from app.reports.summary import SummaryCounts
from app.run.events import Phases
from app.run.figures import FIGURES, NOTHING, median_of
from app.run.metrics import (
    counts,
    decode_seconds,
    decode_speed,
    phase_seconds,
    share_outside_models,
    total_counts,
    total_seconds,
)
from app.run.record import Lane, Repetition, RunRecord

_PHASES = {
    "draft_prompt": "the draft model's pass over the prompt",
    "draft": "guessing",
    "verify": "the target's passes",
    "decide": "the rule, and the copy to the host",
    "rest": "everything else",
}


class Table(msgspec.Struct, frozen=True):
    """A table: its caption, the names of its columns, its rows, and what to know of it."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    words: bool = False
    """Whether its cells are words, which stand at the left, not numbers, at the right."""


def number_tables(record: RunRecord) -> list[Table]:
    """Every table of numbers, in the order of the report."""
    return [_figures(record), _tokens(record), _time(record), _repetitions(record)]


def _figures(record: RunRecord) -> Table:
    rows = tuple((one.label, one.text(record), one.definition) for one in FIGURES.values())
    note = f"{NOTHING}: there is nothing to divide by, or it was not run."
    return Table("Figures", ("Figure", "Value", "Definition"), rows, note, words=True)


def _tokens(record: RunRecord) -> Table:
    """The counts of each lane, all its repetitions together."""
    names = SummaryCounts.__struct_fields__
    rows = []
    for lane in record.lanes:
        tally = total_counts(lane.repetitions)
        rows.append((lane.name, *(str(getattr(tally, name)) for name in names)))
    note = (
        "drafted = accepted + rejected + ignored + discarded; "
        "committed = first + accepted + corrected + bonus + plain."
    )
    return Table("Tokens, all repetitions together", ("Lane", *names), tuple(rows), note)


def _time(record: RunRecord) -> Table:
    """Where the time of a loop went, in each lane."""
    spent = [_loop_phases(lane) for lane in record.lanes]
    rows = [
        (words, *(_milliseconds(phases, name) for phases in spent))
        for name, words in _PHASES.items()
    ]
    rows.append(("a whole loop", *(_milliseconds(phases, "total") for phases in spent)))
    shares = (median_of(record, lane.name, share_outside_models) for lane in record.lanes)
    rows.append(("outside of model calls", *map(_percent, shares)))
    note = "Decode seconds / loops; medians of repetitions."
    head = ("Milliseconds a loop", *(lane.name for lane in record.lanes))
    return Table("Time", head, tuple(rows), note)


def _loop_phases(lane: Lane) -> list[Phases]:
    """The mean phases of a loop, of every repetition that has one, in milliseconds."""
    found = []
    for one in filter(lambda repetition: repetition.rounds, lane.repetitions):
        total, loops = phase_seconds(one), len(one.rounds)
        names = Phases.__struct_fields__
        found.append(Phases(**{name: 1000 * getattr(total, name) / loops for name in names}))
    return found


def _milliseconds(phases: Iterable[Phases], name: str) -> str:
    values = [getattr(each, name) for each in phases]
    return f"{median(values):.2f}" if values else NOTHING


def _repetitions(record: RunRecord) -> Table:
    """A row for every repetition, in the order in which they were opened."""
    head = (
        "Lane",
        "Repetition",
        "Ended by",
        "Tokens",
        "Loops",
        "Tokens per loop",
        "Acceptance rate",
        "Time to first token, s",
        "Decode time, s",
        "Total time, s",
        "Decode speed, tokens/s",
    )
    every = [one for lane in record.lanes for one in lane.repetitions]
    places = {at: place for place, at in enumerate(record.order, 1)}
    every.sort(key=lambda one: places.get(one.at, 0))
    caption = "Repetitions, in the order in which they were opened"
    return Table(caption, head, tuple(map(_repetition, every)))


def _repetition(one: Repetition) -> tuple[str, ...]:
    tally = counts(one)
    return (
        one.at.lane,
        str(one.at.repetition + 1),
        one.finish or "it was cut off",
        str(tally.committed),
        str(tally.rounds),
        _decimal(tally.tokens_per_loop, 2),
        _percent(tally.acceptance_rate),
        _decimal(one.time_to_first_token, 3),
        _decimal(decode_seconds(one) if one.rounds else None, 3),
        _decimal(total_seconds(one), 3),
        _decimal(decode_speed(one), 2),
    )


def _decimal(value: float | None, places: int) -> str:
    return NOTHING if value is None else f"{value:.{places}f}"


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.1f} %"
