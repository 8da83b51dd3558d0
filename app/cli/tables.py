"""The tables and sentences that a command ends with."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from app.appraisal.findings import findings
from app.appraisal.time_split import time_split
from app.appraisal.waits import waits
from app.cli.screen import put, say
from app.reports.plain_text import pictured
from app.run.figures import LENIENCY, agreement, badge, decimal, figures_of, promise
from app.run.flagged import cautions, marked
from app.run.identities import violations
from app.run.metrics import total_counts
from app.run.record import RunRecord
from app.run.rules import is_lossy

_COUNTED = (
    "drafted",
    "accepted",
    "rejected",
    "ignored",
    "discarded",
    "corrected",
    "bonus",
    "plain",
)


def show_verdict(console: Console, record: RunRecord) -> None:
    """The figures of a run, then what they are worth."""
    ran = [lane.name for lane in record.lanes]
    missing = tuple(f"{lane}_" for lane in ("speculative", "baseline") if lane not in ran)
    lossy = is_lossy(record.settings)
    rows = [
        (figure.label, marked(record, figure))
        for figure in figures_of(record)
        if not figure.name.startswith(missing) and (lossy or figure.name != LENIENCY)
    ]
    say(console, "")
    put(console, table(("Figure", "Value"), rows, title=badge(record)))
    _show_worth(console, record)
    say(console, promise(record), style=Style(color="red", bold=True) if lossy else Style())
    for sentence in (agreement(record), *_counted(record), *record.notes):
        say(console, sentence)
    for flag in cautions(record):
        say(console, f"Caution: {flag.message}", style=Style(color="yellow"))
    for fault in _faults(record):
        say(console, f"The counts do not add up: {fault}", style=Style(color="red"))


def _show_worth(console: Console, record: RunRecord) -> None:
    """Whether it pays and why, where the time of a loop went, and how long one waits for text."""
    rows: list[tuple[str, ...]] = [(one.label, one.value) for one in findings(record)]
    put(console, table(("Does it pay?", ""), rows))
    lanes = tuple(lane.name for lane in record.lanes)
    rows = [(row.label, *map(decimal, row.milliseconds)) for row in time_split(record)]
    put(console, table(("Milliseconds a loop", *lanes), rows))
    rows = [(f"{row.lane}: {row.label}", *map(decimal, row.milliseconds)) for row in waits(record)]
    put(console, table(("Milliseconds of waiting", "p50", "p90", "p95"), rows))


def _counted(record: RunRecord) -> list[str]:
    """The counts of the speculative lane, all its repetitions together, in a sentence."""
    found = record.repetitions("speculative")
    if not found:
        return []
    tally = total_counts(found)
    told = ", ".join(f"{name} {getattr(tally, name)}" for name in _COUNTED)
    whose = f"All {len(found)} repetitions together: " if len(found) > 1 else ""
    return [f"{whose}{tally.committed} tokens in {tally.rounds} loops: {told}."]


def _faults(record: RunRecord) -> list[str]:
    """Identities that the record breaks: none, unless the engine or the file is faulty."""
    return [
        f"{lane.name}, repetition {repetition.at.repetition + 1}, {fault}"
        for lane in record.lanes
        for repetition in lane.repetitions
        for fault in violations(repetition)
    ]


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], *, title: str = "") -> Table:
    """A table in which text is only text."""
    made = Table(title=Text(pictured(title)) if title else None, title_justify="left")
    for name in head:
        made.add_column(Text(pictured(name)), overflow="fold")
    for row in rows:
        made.add_row(*(Text(pictured(cell)) for cell in row))
    return made
