"""The commands of the terminal: one file each with its flags, one line here."""

from __future__ import annotations

from typing import Annotated

import typer

from app import __version__
from app.cli.commands import (
    audit,
    bench,
    elsewhere,
    models,
    report,
    run,
    selftest,
    texts,
    train,
)
from app.cli.screen import results, say

terminal = typer.Typer(
    help="Foretoken: see speculative decoding at work, beside a measured baseline.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        say(results(), f"foretoken {__version__}")
        raise typer.Exit


@terminal.callback()
def foretoken(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Tell the version.")
    ] = False,
) -> None:
    """Foretoken: see speculative decoding at work, beside a measured baseline."""


terminal.command()(texts.texts)
terminal.command()(run.run)
terminal.command()(bench.bench)
terminal.command()(audit.audit)
terminal.command()(train.train)
terminal.command()(report.report)
terminal.command()(elsewhere.elsewhere)
terminal.command()(selftest.selftest)
terminal.add_typer(models.models, name="models")
