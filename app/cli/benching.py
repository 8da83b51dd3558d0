"""Runs a bench in this process: progress, a table, and a file from which it can go on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.table import Table

from app.cli.interrupt import Interrupt
from app.cli.progress_line import ProgressLine
from app.cli.screen import remarks, results, say
from app.library.catalogue import Catalogue
from app.library.prompts_set import Prompt
from app.reports.bench_summary import BenchSummary, CategoryFigures, Measurement, summarise_bench
from app.run.cost import PassCosts
from app.run.problems import Cancelled, Problem
from app.run.record import RunRecord
from app.run.settings import RunSettings

CANCELLED = 130
"""The exit code of a bench that Ctrl+C has stopped."""


class _Kept(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One finished run in the file from which a bench goes on."""

    prompt: str
    category: str
    record: RunRecord


def run_bench_study(
    catalogue: Catalogue,
    prompts: Sequence[Prompt],
    ways: Sequence[tuple[str, int]],
    *,
    settings: RunSettings,
    keep: Path | None,
    as_json: bool,
    report: Path | None,
) -> int:
    """Runs what is not in the file yet, shows the summary, and returns the exit code."""
    from app.studies.bench import bench_costs, plan, run_bench
    from app.studies.workbench import Workbench

    done = _read(keep) if keep else []
    finished = {_key(one.prompt, one.record.settings) for one in done}
    planned = plan(prompts, ways, settings)
    left = [one for one in planned if _key(one.prompt.id, one.settings) not in finished]
    costs: PassCosts | None = None
    cancelled = False
    with Interrupt() as interrupt, ProgressLine(remarks()) as progress:
        bench = Workbench(catalogue)
        longest = max(length for _, length in ways)
        try:
            costs = bench_costs(
                bench, settings, longest, report=progress.show, pause=interrupt.pause
            )
            for run in run_bench(bench, left, report=progress.show, pause=interrupt.pause):
                done.append(_Kept(run.prompt, run.category, run.record))
                if keep:
                    _append(keep, done[-1])
        except Cancelled:
            cancelled = True
    summary = summarise_bench([_measurement(one) for one in done], costs)
    if summary is not None:
        _show(summary, as_json=as_json)
        if report:
            _write(report, summary.json())
    return CANCELLED if cancelled else 0


def _key(prompt: str, settings: RunSettings) -> tuple[str, bytes]:
    """The same for the same prompt and settings."""
    return prompt, msgspec.json.encode(settings)


def _measurement(kept: _Kept) -> Measurement:
    return kept.prompt, kept.category, kept.record


def _read(path: Path) -> list[_Kept]:
    """What an earlier bench has finished; a last line that a kill has cut off is taken away."""
    if not path.exists():
        return []
    *lines, cut = path.read_bytes().split(b"\n")
    kept = []
    for number, line in enumerate(lines, start=1):
        try:
            kept.append(msgspec.json.decode(line, type=_Kept))
        except msgspec.MsgspecError:
            raise Problem(
                f"{path}, line {number} is not a run of a bench.",
                "Name the file that an earlier bench has written, or a new one.",
            ) from None
    if cut:
        os.truncate(path, path.stat().st_size - len(cut))
    return kept


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise Problem(
            f"{path} cannot be written: {error.strerror}.", "Name another file."
        ) from None
    say(remarks(), f"Written: {path}")


def _append(path: Path, kept: _Kept) -> None:
    try:
        with path.open("ab") as file:
            file.write(msgspec.json.encode(kept) + b"\n")
    except OSError as error:
        raise Problem(
            f"{path} cannot be written: {error.strerror}.", "Name another file."
        ) from None


def _show(summary: BenchSummary, *, as_json: bool) -> None:
    if as_json:
        say(results(), summary.json())
        return
    for way in summary.ways:
        table = Table(title=f"{way.method}, draft length {way.draft_length}")
        for column in ("Category", "Prompts", "Tokens/loop", "Accepted of tested", "Speculative"):
            table.add_column(column, justify="left" if column == "Category" else "right")
        table.add_column("Baseline", justify="right")
        table.add_column("Speed-up (95 %)", justify="right")
        for name, figures in (*way.categories.items(), ("all together", way.overall)):
            table.add_row(name, *_row(figures))
        results().print(table)
        say(results(), f"{way.verdict[:1].upper()}{way.verdict[1:]}.")
    if summary.cost:
        ticks = ", ".join(f"{w}: {1000 * s:.1f}" for w, s in summary.cost.seconds.items())
        say(results(), f"A target pass by rows, ms: {ticks}.")
    say(results(), "Speeds are tokens over decode seconds, summed over all prompts, in tokens/s.")


def _row(figures: CategoryFigures) -> list[str]:
    speedup = figures.decode_speedup
    shown = "n/a"
    if speedup is not None:
        spread = "one pair" if speedup.low is None else f"{speedup.low:.2f}–{speedup.high:.2f}"
        shown = f"{speedup.value:.2f}× ({spread})"
    return [
        str(figures.prompts),
        _number(figures.tokens_per_loop),
        _number(figures.conditional_acceptance),
        _number(figures.speculative_tokens_per_second),
        _number(figures.baseline_tokens_per_second),
        shown,
    ]


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"
