"""The reports of a bench: an object, a page of tables, or a row a way and category.

Each holds what is needed to repeat the bench, and what was not held equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from app.reports.bench_conditions import to_mind, to_repeat
from app.reports.bench_figures import CategoryFigures
from app.reports.bench_summary import BenchSummary, WayFigures
from app.reports.bench_tables import ALL, bench_tables, condition_tables, definitions, sentence
from app.reports.csv_report import Cell, sheet
from app.reports.html.page import filled
from app.reports.html.tables import Table
from app.reports.markdown_report import table, use_elsewhere
from app.reports.plain_text import inline
from app.reports.run_facts import FACT_COLUMNS, Fact, elsewhere_facts, facts
from app.reports.writing import check_report_path, write_files

BENCH_FORMATS: dict[str, Callable[[BenchSummary], Mapping[str, str]]] = {
    ".json": lambda summary: {".json": summary.json() + "\n"},
    ".csv": lambda summary: {".csv": _csv(summary), ".run.csv": _facts(summary)},
    ".md": lambda summary: {".md": _markdown(summary)},
    ".html": lambda summary: {".html": _html(summary)},
}
"""The formats on offer, by the suffix that chooses them: each makes the files of a report, the
first of that suffix and the others to lie beside it."""


def write_bench_report(summary: BenchSummary, path: Path) -> list[Path]:
    """Writes a report in the format of its suffix, in the place of one that is there.

    Returns the files. Raises Problem.
    """
    check_report_path(path, overwrite=True)
    first, *beside = BENCH_FORMATS[path.suffix.lower()](summary).items()
    texts = {path: first[1], **{path.with_suffix(suffix): text for suffix, text in beside}}
    write_files(texts)
    return list(texts)


def _facts(summary: BenchSummary) -> str:
    """A row a fact that is needed to repeat the bench, or that was not held equal."""
    found, ways = summary.conditions, [way.name for way in summary.ways]
    notes: list[Fact] = [("note", note) for note in summary.notes]
    costs = [fact for way in summary.ways for fact in facts(f"cost.{way.name}", way.cost)]
    best = ("elsewhere.way", summary.best.name)
    told = [*to_repeat(found, ways), *costs, best, *elsewhere_facts(summary.elsewhere)]
    return sheet(FACT_COLUMNS, [*told, *to_mind(found), *notes])


def _csv(summary: BenchSummary) -> str:
    """A row a way and category, and one for all categories, which has its costs too; intervals have
    three columns.
    """
    rows = [
        (way.method, way.draft_length, name, *_cells(one).values(), way.badge, *costs)
        for way in summary.ways
        for name, one, costs in (
            *((*category, _NO_COSTS) for category in way.categories.items()),
            (ALL, way.overall, _costs(way)),
        )
    ]
    columns = ("method", "draft_length", "category", *_cells(summary.overall), "badge", *_COSTS)
    return sheet(columns, rows)


_COSTS = (
    "account",
    "prediction",
    "guesses_by",
    "draft_step_s",
    "guess_s",
    "whole_rows",
    "whole_pass_s",
    "single_pass_s",
    "missing",
)
_NO_COSTS: tuple[Cell, ...] = (None,) * len(_COSTS)


def _costs(way: WayFigures) -> tuple[Cell, ...]:
    """What a way costs and should bring, by `_COSTS`."""
    cost, due = way.cost, (way.account, way.prediction)
    if cost is None:
        return (*due, *(None,) * 6, way.missing)
    whole, single = cost.seconds.get(cost.whole), cost.seconds[1]
    parts = (cost.draft, cost.draft_step, cost.guess, cost.whole, whole, single)
    return (*due, *parts, way.missing)


def _cells(figures: CategoryFigures) -> dict[str, Cell]:
    """Every figure by the name of its column; those of several parts a column each."""
    cells: dict[str, Cell] = {}
    for name, value in msgspec.to_builtins(figures).items():
        for part in _PARTS.get(name, ("",)):
            of: Any = value.get(part) if isinstance(value, dict) else value
            cells[f"{name}_{part}".removesuffix("_value").removesuffix("_")] = of
    return cells


_INTERVAL = ("value", "low", "high")
_SHARES = ("p50", "p90", "p95")
_PARTS: dict[str, tuple[str, ...]] = {
    "decode_speedup": _INTERVAL,
    "speedup_of_means": _INTERVAL,
    "request_speedup": _INTERVAL,
    "speculative_chunk_gaps": _SHARES,
    "baseline_chunk_gaps": _SHARES,
    "speculative_seconds_per_token": _SHARES,
    "baseline_seconds_per_token": _SHARES,
}


def _markdown(summary: BenchSummary) -> str:
    parts = ["# A bench of Foretoken", f"**{inline(_best(summary))}**"]
    parts += [f"> {inline(note)}" for note in summary.notes]
    for one in _tables(summary):
        parts += [f"## {inline(one.caption)}", table(one.head, one.rows)]
        parts += [inline(one.note)] if one.note else []
    parts += [use_elsewhere(summary.elsewhere, inline(_whose(summary)))]
    return "\n\n".join(parts) + "\n"


def _html(summary: BenchSummary) -> str:
    values = {
        "best": _best(summary),
        "notes": summary.notes,
        "tables": _tables(summary),
        "elsewhere": summary.elsewhere,
        "whose": _whose(summary),
    }
    return filled(values, "bench.html.jinja")


def _tables(summary: BenchSummary) -> list[Table]:
    return [*bench_tables(summary), definitions(), *condition_tables(summary)]


def _best(summary: BenchSummary) -> str:
    return f"{summary.best.name}: {sentence(summary.verdict)}"


def _whose(summary: BenchSummary) -> str:
    """Which of the ways is told for other programs."""
    return f"The set-up of the best way ({summary.best.name}), and what is not the same there."
