"""The tables of numbers: figures, costs, time, tokens, and every repetition."""

from __future__ import annotations

import msgspec

from app.appraisal.findings import findings
from app.appraisal.time_split import time_split
from app.appraisal.waits import DEFINITION, waits
from app.reports.summary import SummaryCounts
from app.run.figures import NOTHING, decimal, figures_of, median_of, percent
from app.run.flagged import marked
from app.run.metrics import (
    counts,
    decode_seconds,
    decode_speed,
    share_outside_models,
    total_counts,
    total_seconds,
)
from app.run.record import Repetition, RunRecord


class Table(msgspec.Struct, frozen=True):
    """A table: its caption, the names of its columns, its rows, and what to know of it."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    words: bool = False
    """Whether its cells are words, which stand at the left, not numbers, at the right."""
    needed: tuple[str, ...] = ()
    """The columns but the first, the most needed first, where the last may stay away for want of
    room; empty where none may.
    """


def number_tables(record: RunRecord) -> list[Table]:
    """Every table of numbers, in the order of the report."""
    return [
        _figures(record),
        _does_it_pay(record),
        _time(record),
        _waits(record),
        _tokens(record),
        _repetitions(record),
    ]


def _figures(record: RunRecord) -> Table:
    rows = tuple((one.label, marked(record, one), one.definition) for one in figures_of(record))
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
    head = ("Lane", *map(on_screen, names))
    return Table("Tokens, all repetitions together", head, tuple(rows), note)


def on_screen(name: str) -> str:
    """The name of a count as people read it: a round is a loop to them."""
    return "loops" if name == "rounds" else name


def _does_it_pay(record: RunRecord) -> Table:
    rows = tuple((one.label, one.value, one.definition) for one in findings(record))
    return Table("Does it pay?", ("Question", "Answer", "Definition"), rows, words=True)


def _time(record: RunRecord) -> Table:
    """Where the time of a loop went, in each lane."""
    rows = [(row.label, *map(decimal, row.milliseconds)) for row in time_split(record)]
    shares = (median_of(record, lane.name, share_outside_models) for lane in record.lanes)
    rows.append(("outside of model calls", *map(percent, shares)))
    note = "Decode seconds / loops; medians of repetitions."
    head = ("Milliseconds a loop", *(lane.name for lane in record.lanes))
    return Table("Time", head, tuple(rows), note)


def _waits(record: RunRecord) -> Table:
    """How long one waited for text, in each lane."""
    rows = tuple((row.lane, row.label, *map(decimal, row.milliseconds)) for row in waits(record))
    head = ("Lane", "Milliseconds", "p50", "p90", "p95")
    return Table("Waiting for text", head, rows, DEFINITION)


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
        decimal(tally.tokens_per_loop, 2),
        percent(tally.acceptance_rate),
        decimal(one.time_to_first_token, 3),
        decimal(decode_seconds(one) if one.rounds else None, 3),
        decimal(total_seconds(one), 3),
        decimal(decode_speed(one), 2),
    )
