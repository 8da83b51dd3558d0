"""Runs side by side: what was asked of each, what it ran on, and its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from app.run.events import ModelFacts
from app.run.figures import FIGURES, agreement, figures_of, promise
from app.run.record import RunRecord

LONGEST = 200
"""Characters of a text that a cell shows."""


class ComparisonRow(msgspec.Struct, frozen=True):
    """One thing of every run, in the order of the runs."""

    group: str
    label: str
    definition: str
    cells: tuple[str, ...]
    equal: bool
    """Whether all runs have the same here, also behind what a cell shows."""
    values: tuple[float | None, ...] = ()
    """The numbers behind the cells; none for a row of words."""


class Comparison(msgspec.Struct, frozen=True):
    """Several runs, and what they have side by side."""

    runs: tuple[str, ...]
    rows: tuple[ComparisonRow, ...]

    @property
    def unequal_settings(self) -> tuple[str, ...]:
        """What was asked or used and not held equal, by label."""
        return tuple(
            row.label for row in self.rows if row.group not in ("Figures", "Run") and not row.equal
        )


def compare(records: Sequence[RunRecord]) -> Comparison:
    """These runs side by side: the run, its settings, its machine, then every figure."""
    rows = (
        *_words("Run", _RUN, records),
        *_settings(records),
        *_words("Machine", _MACHINE, records),
        *_figures(records),
    )
    return Comparison(tuple(record.run for record in records), rows)


def _draft(of: Callable[[ModelFacts], str]) -> Callable[[RunRecord], object]:
    return lambda record: of(record.draft) if record.draft else "none"


_RUN: dict[str, Callable[[RunRecord], object]] = {
    "Started": lambda record: record.started,
    "Outcome": lambda record: record.outcome,
    "Same text": agreement,
    "Promise": promise,
}

_MACHINE: dict[str, Callable[[RunRecord], object]] = {
    "Target": lambda record: record.target.name,
    "Target's precision": lambda record: record.target.precision,
    "Attention": lambda record: record.target.attention,
    "Passes": lambda record: record.target.passes or "eager",
    "Draft": _draft(lambda facts: facts.name),
    "Draft's precision": _draft(lambda facts: facts.precision),
    "Device": lambda record: record.environment.device,
    "Processor": lambda record: record.environment.processor,
    "Threads": lambda record: record.environment.threads,
    "System": lambda record: record.environment.platform,
    "Foretoken": lambda record: record.environment.app,
    "Python": lambda record: record.environment.python,
    "Packages": lambda record: _pairs(record.environment.packages.items()),
}


def _words(
    group: str, table: dict[str, Callable[[RunRecord], object]], records: Sequence[RunRecord]
) -> Iterable[ComparisonRow]:
    for label, of in table.items():
        yield _row(group, label, [of(record) for record in records])


def _settings(records: Sequence[RunRecord]) -> Iterable[ComparisonRow]:
    """Every setting, those of the sampling each in a row of its own."""
    columns = [_flat(record) for record in records]
    for label in columns[0] if columns else ():
        yield _row("Settings", label, [column[label] for column in columns])


def _flat(record: RunRecord) -> dict[str, object]:
    settings = msgspec.structs.asdict(record.settings)
    sampling = msgspec.structs.asdict(settings.pop("sampling"))
    named = {
        name: _pairs(value.items()) if isinstance(value, dict) else value
        for name, value in {**settings, **sampling}.items()
    }
    return {name.replace("_", " ").capitalize(): value for name, value in named.items()}


def _figures(records: Sequence[RunRecord]) -> Iterable[ComparisonRow]:
    known = {figure.name for record in records for figure in figures_of(record)}
    for figure in (one for one in FIGURES.values() if one.name in known):
        values = tuple(figure.value(record) for record in records)
        yield ComparisonRow(
            "Figures",
            figure.label,
            figure.definition,
            tuple(figure.text(record) for record in records),
            len(set(values)) <= 1,
            values,
        )


def _row(group: str, label: str, values: Sequence[object]) -> ComparisonRow:
    """A row of words."""
    equal = all(value == values[0] for value in values[1:])
    return ComparisonRow(group, label, "", tuple(map(_cell, values)), equal)


def _pairs(items: Iterable[tuple[str, object]]) -> str:
    return ", ".join(f"{name} {_cell(value)}" for name, value in sorted(items))


def _cell(value: object) -> str:
    """A value as it is shown in a cell; None is a setting that was left to the program."""
    if value is None:
        return "automatic"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(map(repr, value)) if isinstance(value, tuple) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
