"""Runs a bench in this process: progress, tables, reports, and a file from which it can go on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.bench_file import BenchFile, KeptCosts, KeptRun
from app.cli.fitted_tables import fitted
from app.cli.interrupt import STOPPED, Interrupt
from app.cli.progress_line import ProgressLine
from app.cli.remaining import Remaining
from app.cli.running import check_reports
from app.cli.screen import put, remarks, results, say, say_problem, warn
from app.library.catalogue import Catalogue
from app.library.prompts_set import Prompt
from app.reports.bench_figures import DEFINITIONS, Measurement
from app.reports.bench_report import write_bench_report
from app.reports.bench_summary import BenchSummary, summarise_bench
from app.reports.bench_tables import bench_tables
from app.run.cost import MethodCosts
from app.run.problems import Cancelled, Problem
from app.run.settings import RunSettings

if TYPE_CHECKING:
    from app.studies.bench import Planned


def run_bench_study(
    catalogue: Catalogue,
    prompts: Sequence[Prompt],
    ways: Sequence[tuple[str, int]],
    *,
    settings: RunSettings,
    keep: Path | None,
    as_json: bool,
    reports: Sequence[Path],
) -> int:
    """Runs what is not in the file yet, shows the summary, and returns the exit code. Raises
    Problem for settings out of range.
    """
    settings.check()
    check_reports(reports)
    from app.studies.bench import plan, resumed  # torch takes seconds

    file = BenchFile(keep)
    planned = [resumed(one, file.record) for one in plan(prompts, ways, settings)]
    done: list[Measurement] = [
        (one.prompt.id, one.prompt.category, record) for one in planned for record in one.done
    ]
    study = _Study(catalogue, file, done)
    cancelled = study.run(planned, ways, settings)
    summary = summarise_bench(done, study.costs, notes=study.notes)
    if summary is None and not cancelled:
        raise Problem(study.notes[0], "Raise the context length, or choose other prompts.")
    if summary is not None:
        _show(summary, as_json=as_json)
    written = [_write(summary, path) for path in reports if summary is not None]
    return STOPPED if cancelled else 0 if all(written) else 1


class _Study:
    """A bench under way: what it has measured so far."""

    def __init__(self, catalogue: Catalogue, file: BenchFile, done: list[Measurement]) -> None:
        self._catalogue = catalogue
        self._file = file
        self._done = done
        self.costs: dict[str, MethodCosts] = {}
        self.notes: list[str] = []

    def run(
        self, planned: Sequence[Planned], ways: Sequence[tuple[str, int]], settings: RunSettings
    ) -> bool:
        """Runs what is left of the plan; whether Ctrl+C has ended it. The costs of a method are
        measured anew where some of its runs are left.
        """
        from app.studies.bench import BrokenOff, check_ways, method_costs, run_bench, to_cost
        from app.studies.head_steps import StepTimes
        from app.studies.workbench import Workbench

        left = {one.settings.method for one in planned if one.next}
        wanted = to_cost(ways, settings)
        for one in wanted:
            if (kept := self._file.costs(one)) is not None:
                self.costs[one.method] = kept
        with Interrupt() as interrupt, ProgressLine(remarks()) as progress:
            bench, show = Workbench(self._catalogue), Remaining(progress.show).show
            steps, pause = StepTimes(), interrupt.pause
            try:
                check_ways(bench, planned, report=show, pause=pause)
                for one in wanted:
                    if one.method in left or one.method not in self.costs:
                        costs = method_costs(bench, one, steps=steps, report=show, pause=pause)
                        self.costs[one.method] = costs
                        self._file.keep(KeptCosts(one, costs))
                for run in run_bench(bench, planned, steps=steps, report=show, pause=pause):
                    if isinstance(run, BrokenOff):
                        progress.close()
                        warn(run.message)
                        self.notes.append(run.message)
                        continue
                    self._file.keep(KeptRun(run.prompt, run.category, run.record))
                    self._done.append((run.prompt, run.category, run.record))
            except Cancelled:
                return True
        return False


def _write(summary: BenchSummary, path: Path) -> bool:
    """Writes a report; whether it could be written."""
    try:
        written = write_bench_report(summary, path)
    except Problem as problem:
        say_problem(problem.message, problem.remedy)
        return False
    for file in written:
        say(remarks(), f"Written: {file}")
    return True


def _show(summary: BenchSummary, *, as_json: bool) -> None:
    """The end of a bench on stdout: one JSON object, or the tables with what they mean."""
    if as_json:
        say(results(), summary.json())
        return
    away: dict[str, None] = {}
    for one in bench_tables(summary):
        found = fitted(one, results().width)
        for part in found.parts:
            put(results(), part)
        away |= dict.fromkeys(found.left_out)
        if one.note:
            say(results(), one.note)
        say(results(), "")
    if away:
        say(results(), f"Not shown for want of room: {', '.join(away)}. Reports hold them.")
    for column, meaning in DEFINITIONS.items():
        say(results(), f"{column}: {meaning}")
    for note in summary.notes:
        say(results(), note)
