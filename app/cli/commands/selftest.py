"""`selftest`: every part of the program, tried on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.screen import results, say
from app.selftest.selftest import run_selftest


def selftest(
    *,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="Run the embedded pair too, if it is here.")
    ] = False,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Instead, prove the checks of the figures by planted faults."),
    ] = False,
) -> None:
    """Try every part of the program on this machine, one line a check; nothing is downloaded."""
    passed = run_selftest(lambda line: say(results(), line), embedded=embedded, deep=deep)
    raise typer.Exit(0 if passed else 1)
