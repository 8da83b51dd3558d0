"""`bench --random-model`: progress, what came of it, and its reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from app.cli.fitted_tables import fitted
from app.cli.interrupt import STOPPED, Interrupt
from app.cli.progress_line import ProgressLine
from app.cli.remaining import Remaining
from app.cli.screen import put, remarks, results, say, say_problem
from app.reports.random_report import (
    TITLE,
    check_random_report,
    random_json,
    random_notes,
    random_tables,
    write_random_report,
)
from app.run.problems import Problem
from app.run.random_bench import RandomBench, RandomMeasured

OWN = ("random_model", "random_draft", "prompt_tokens", "alpha")
"""The parameters of `bench` that are of use with random weights alone."""
_SHARED = (
    "draft_lengths",
    "max_new_tokens",
    "repeats",
    "precision",
    "device",
    "passes",
    "seed",
    "as_json",
    "report",
)
"""Those that are of use with them too."""


def check_beside(context: typer.Context) -> None:
    """Raises Problem for what was given on the command line and does not go together: with random
    weights what is for a pair and its prompts, and without them what is for these.
    """
    given = [name for name in context.params if _given(context, name)]
    if "random_model" in given:
        unfit = [name for name in given if name not in (*OWN, *_SHARED)]
        if unfit:
            raise Problem(
                f"{_flags(unfit)} cannot be given with --random-model.",
                "Random weights read no text, and their draft is --random-draft: leave it out.",
            )
        return
    unfit = [name for name in given if name in OWN]
    if unfit:
        raise Problem(
            f"{_flags(unfit)} asks for random weights.", "Name their shape with --random-model."
        )


def one_length(written: str | None) -> int:
    """The draft length of `--draft-lengths`, of which random weights take one; 4 unless told."""
    if written is None:
        return RandomBench("").draft_length
    try:
        return int(written)
    except ValueError:
        raise Problem(
            f"{written!r} is not one draft length.",
            "With --random-model give a single number to --draft-lengths.",
        ) from None


def run_random_bench(wanted: RandomBench, *, as_json: bool, reports: Sequence[Path]) -> int:
    """Measures, shows the figures, writes the reports, and returns the exit code. Raises Problem,
    and Cancelled after a Ctrl+C that came before anything could be shown.
    """
    for path in reports:
        check_random_report(path)
    with Interrupt() as interrupt, ProgressLine(remarks()) as progress:
        # Imported here: torch takes seconds.
        from app.studies.random_bench import bench_random

        show = Remaining(progress.show).show
        found = bench_random(wanted, report=show, pause=interrupt.pause)
    if as_json:
        say(results(), random_json(found))
    else:
        _show(found)
    written = [_write(found, path) for path in reports]
    return STOPPED if not found.whole else 0 if all(written) else 1


def _show(found: RandomMeasured) -> None:
    say(results(), f"{TITLE}: {found.wanted.target}")
    for note in random_notes(found):
        say(results(), note)
    for one in random_tables(found):
        for part in fitted(one, results().width).parts:
            put(results(), part)


def _write(found: RandomMeasured, path: Path) -> bool:
    """Writes a report; whether it could be written."""
    try:
        write_random_report(found, path)
    except Problem as problem:
        say_problem(problem.message, problem.remedy)
        return False
    say(remarks(), f"Written: {path}")
    return True


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _flags(names: Sequence[str]) -> str:
    spelt = {"as_json": "json"}
    return ", ".join(f"--{spelt.get(name, name).replace('_', '-')}" for name in names)
