"""The engine as the window has it: a child process that runs, and a record that is reported."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from app.engine.client import EngineClient
from app.engine.protocol import EngineEnded, JobProblem, Message, Run
from app.engine.surroundings import log_file
from app.reports import FORMATS, read_record, write_report
from app.run.events import RunEnded
from app.run.preparation import EngineReady
from app.run.problems import Problem
from app.run.record import RunRecord
from app.run.settings import RunSettings
from app.selftest import embedded
from app.selftest.result import Result, tried
from app.selftest.runs import embedded_run, tiny_run, tiny_verdict, verdict

PATIENCE = 600.0
"""Seconds that a run in the engine may take, its start and a conversion included."""

_POLL_SECONDS = 0.05


def checks(folder: Path) -> Iterator[Result]:
    """A run of the tiny pair, and a report of it in each format; they write in `folder`."""
    records: list[RunRecord] = []

    def look() -> str:
        record, engine = run_in_engine(tiny_run("draft-model"))
        records.append(record)
        return f"{tiny_verdict(record)}; torch {engine.torch}, {engine.device}"

    result = tried("engine process", look)
    yield _with_log(result) if result.failed else result
    for suffix in FORMATS if records else ():
        yield tried(f"report {suffix}", partial(_report, records[0], folder, suffix))


def embedded_checks() -> Iterator[Result]:
    """A short run of the embedded pair, if its model is on this machine."""
    yield tried("embedded pair", _embedded)


def run_in_engine(settings: RunSettings) -> tuple[RunRecord, EngineReady]:
    """A run in an engine of its own, to its end. Raises Problem if there is no such end."""
    client = EngineClient()
    told: list[EngineReady] = []
    deadline = time.monotonic() + PATIENCE
    try:
        client.send(Run("selftest", settings))
        while time.monotonic() < deadline:
            for message in client.drain():
                told += [message] if isinstance(message, EngineReady) else []
                if isinstance(message, RunEnded) and client.record is not None:
                    return client.record, told[0]
                _raise_if_over(message)
            time.sleep(_POLL_SECONDS)
    finally:
        client.close()
    raise Problem(f"The run has not ended within {PATIENCE:g} s.", "")


def _raise_if_over(message: Message) -> None:
    """Raises Problem for a message after which no run will end."""
    if isinstance(message, JobProblem):
        raise Problem(message.message, message.remedy)
    if isinstance(message, EngineEnded):
        raise Problem(message.reason, "")


def _with_log(result: Result) -> Result:
    """The result with the log's last complaint: the log itself is gone in the end."""
    try:
        with open(log_file(), encoding="utf-8", errors="replace") as log:
            said = [line.strip() for line in log if line.strip() and " INFO " not in line]
    except OSError:
        said = []
    return Result(result.name, " Its log: ".join([result.detail, *said[-1:]]), failed=True)


def _report(record: RunRecord, folder: Path, suffix: str) -> str:
    """Writes a report; one that can be read back has to say the same."""
    written = write_report(record, folder / f"report{suffix}", overwrite=True)
    if suffix == ".json" and read_record(written[0]) != record:
        raise Problem("The report does not read back as it was written.", "")
    return ", ".join(f"{file.name}, {file.stat().st_size:,} bytes" for file in written)


def _embedded() -> str:
    offered = embedded.catalogue()
    if not embedded.has_embedded(offered):
        return "not run: its model is not on this machine"
    entry = offered.pair(embedded.PAIR)
    record, _ = run_in_engine(embedded_run(entry.name, entry.method))
    return verdict(record)
