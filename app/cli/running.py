"""Runs a study in this process: the same one that the engine runs for the window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from app.cli.interrupt import Interrupt
from app.cli.progress_line import ProgressLine
from app.cli.recipes import show_recipes
from app.cli.screen import remarks, results, say, say_problem
from app.cli.tables import show_verdict
from app.cli.token_stream import TokenStream
from app.elsewhere.programs import recipes
from app.library.catalogue import Catalogue
from app.reports import check_report_path, report_files, summarise, write_report
from app.run.events import LaneStarted, Outcome, RunEvent, RunStarted
from app.run.problems import Cancelled, Problem
from app.run.record import RunRecord
from app.run.settings import RunSettings

EXIT_CODES: dict[Outcome, int] = {"finished": 0, "cancelled": 130}
"""The exit code of each outcome of a run; 1 for every other."""


def check_reports(paths: Sequence[Path]) -> None:
    """Raises Problem, before anything runs, for a report that could not be written."""
    taken: set[Path] = set()
    for path in paths:
        check_report_path(path, overwrite=True)
        files = {file.resolve() for file in report_files(path)}
        if files & taken:
            raise Problem(f"Two reports would be written to {path}.", "Name each of them once.")
        taken |= files


def run_study(
    settings: RunSettings,
    catalogue: Catalogue,
    *,
    reports: Sequence[Path],
    as_json: bool,
    show_rejected: bool,
    use_elsewhere: bool = False,
) -> int:
    """Runs, shows, writes the reports, and returns the exit code. Raises Problem for settings out
    of range.
    """
    settings.check()
    check_reports(reports)
    watch = _Watch(settings, quiet=as_json, show_rejected=show_rejected)
    try:
        watch.run(catalogue, settings)
    except (Exception, SystemExit) as error:
        if watch.record is None:
            if reports and isinstance(error, Cancelled):
                say_problem("No report is written: the run had not begun.", "")
        else:
            watch.record.close("failed", message=f"The run broke off: {_reason(error)}.")
            _write(watch.record, reports)
        raise
    record = watch.record
    if record is None:
        raise RuntimeError("the run ended before it began")
    written = _write(record, reports)
    _show(record, as_json=as_json, use_elsewhere=use_elsewhere)
    code = EXIT_CODES.get(record.outcome, 1)
    if code == 1:
        say_problem(record.message, record.remedy)
    return code or (0 if written else 1)


def _reason(error: BaseException) -> str:
    """What ended a run from outside, in a few words."""
    if isinstance(error, SystemExit):  # how a console takes a reader that has gone
        return "nobody reads its output any more"
    return error.message.rstrip(".") if isinstance(error, Problem) else type(error).__name__


class _Watch:
    """Keeps the record of a run and shows it while it goes on."""

    def __init__(self, settings: RunSettings, *, quiet: bool, show_rejected: bool) -> None:
        self.record: RunRecord | None = None
        self._progress = ProgressLine(remarks())
        self._stream = (
            None
            if quiet
            else TokenStream(
                results(), may_be_cut=bool(settings.stop_strings), show_rejected=show_rejected
            )
        )

    def run(self, catalogue: Catalogue, settings: RunSettings) -> None:
        """Runs to the end, or to the first Ctrl+C. Raises Problem if it cannot begin."""
        with Interrupt() as interrupt, self._progress as progress:
            # Imported here: torch takes seconds, and only a run needs it.
            from app.studies.workbench import Workbench

            interrupt.pause()
            Workbench(catalogue).run(
                uuid4().hex,
                settings,
                emit=self._take,
                report=progress.show,
                pause=interrupt.pause,
            )

    def _take(self, event: RunEvent) -> None:
        if isinstance(event, LaneStarted):
            self._progress.close()
        if isinstance(event, RunStarted):
            self.record = RunRecord.begin(event)
        elif self.record is not None:
            self.record.apply(event)
        if self._stream is not None:
            self._stream.show(event)


def _write(record: RunRecord, reports: Sequence[Path]) -> bool:
    """Writes every report that can be written; whether that was all."""
    whole = True
    for path in reports:
        try:
            for file in write_report(record, path, overwrite=True):
                say(remarks(), f"Written: {file}")
        except Problem as problem:
            say_problem(problem.message, problem.remedy)
            whole = False
    return whole


def _show(record: RunRecord, *, as_json: bool, use_elsewhere: bool) -> None:
    """The end of a run on stdout: one JSON object, which holds everything, or the table."""
    if as_json:
        say(results(), summarise(record).json())
    else:
        show_verdict(results(), record)
        if use_elsewhere:
            show_recipes(results(), recipes(record))
