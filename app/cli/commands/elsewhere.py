"""`elsewhere`: the set-up of a report, in the words of other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from app.cli.recipes import show_recipes
from app.cli.screen import results, say
from app.elsewhere.programs import PROGRAMS
from app.reports.told_elsewhere import told_elsewhere
from app.run.problems import Problem


def elsewhere(
    file: Annotated[Path, typer.Argument(help="A JSON report of a run, or of a bench.")],
    program: Annotated[
        str | None, typer.Option(help=f"Only for one of: {', '.join(PROGRAMS)}.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array.")] = False,
) -> None:
    """Write the set-up of a run, or of a bench's best way, for other programs, and tell what is not
    the same there.
    """
    known = {name.lower(): name for name in PROGRAMS}
    if program is not None and program.lower() not in known:
        said = f"There are no words for the program {program!r}."
        raise Problem(said, f"Choose one of: {', '.join(PROGRAMS)}.")
    wanted = PROGRAMS if program is None else [known[program.lower()]]
    found = [one for one in told_elsewhere(file) if one.program in wanted]
    if as_json:
        say(results(), json.dumps(msgspec.to_builtins(found)))
    else:
        show_recipes(results(), found)
