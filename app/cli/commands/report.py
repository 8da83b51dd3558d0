"""`report`: a kept report is shown, or written in another format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from app.cli.running import check_reports
from app.cli.screen import remarks, results, say
from app.cli.tables import show_verdict
from app.cli.token_stream import TokenStream, replay
from app.reports import read_record, write_report
from app.reports.schema import record_schema
from app.run.record import RunRecord


def report(
    file: Annotated[Path | None, typer.Argument(help="A JSON report.")] = None,
    to: Annotated[
        list[Path] | None, typer.Option(help="Write it as .json, .csv, .md or .html; may repeat.")
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the layout of the JSON report, field by field.")
    ] = False,
) -> None:
    """Show a JSON report, or write it in another format."""
    if schema:
        say(results(), json.dumps(record_schema(), indent=2))
        return
    if file is None:
        raise typer.BadParameter("name a JSON report, or --schema")
    record = read_record(file)
    check_reports(to or [])
    for path in to or []:
        for written in write_report(record, path, overwrite=True):
            say(remarks(), f"Written: {written}")
    if not to:
        _show(record)


def _show(record: RunRecord) -> None:
    """The first repetition of each lane as it was written, and the figures."""
    stream = TokenStream(results(), may_be_cut=True)
    for lane in record.lanes:
        for event in (one for each in lane.repetitions[:1] for one in replay(each)):
            stream.show(event)
    show_verdict(results(), record)
