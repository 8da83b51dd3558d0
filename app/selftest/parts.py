"""Parts of the self-test, each in a process of its own: a crash in one is a line like any other."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Generator, Iterator
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from app.selftest.result import Result, failure

PATIENCE = 600.0
"""Seconds without any result after which a part counts as hung."""

_SPAWN = multiprocessing.get_context("spawn")
_REAP_SECONDS = 10.0
_decode = msgspec.msgpack.Decoder(Result).decode


def run_part(name: str, module: str, folder: Path) -> Iterator[Result]:
    """Runs `module`'s checks in a new process, and yields their results as they come.

    `module` is named and not imported, for it leads to torch or to Qt; its function `checks`
    takes the folder that it may write in.
    """
    near, far = _SPAWN.Pipe(duplex=False)
    process = _SPAWN.Process(target=enter, args=(far, name, module, folder), daemon=True)
    process.start()
    far.close()
    try:
        hung = yield from _results(near)
        if hung:
            yield Result(name, f"gave no result for {PATIENCE:g} s", failed=True)
            return
        process.join(_REAP_SECONDS)
        if process.exitcode != 0:
            yield Result(name, _ending(process.exitcode), failed=True)
    finally:
        process.kill()
        process.join()
        near.close()


def enter(connection: Connection, name: str, module: str, folder: Path) -> None:
    """Where the process of a part begins."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the one who started it
    try:
        for result in import_module(module).checks(folder):
            connection.send_bytes(msgspec.msgpack.encode(result))
    except Exception as fault:
        connection.send_bytes(msgspec.msgpack.encode(failure(name, fault)))
    if {"torch", "PySide6"} <= sys.modules.keys():
        met = Result(name, "torch and Qt have met in one process", failed=True)
        connection.send_bytes(msgspec.msgpack.encode(met))
    connection.close()


def _results(connection: Connection) -> Generator[Result, None, bool]:
    """What comes, until the other side is gone; returns whether it went silent instead."""
    while connection.poll(PATIENCE):
        try:
            yield _decode(connection.recv_bytes())
        except (EOFError, OSError):
            return False
    return True


def _ending(code: int | None) -> str:
    """How a process has ended that did not end well."""
    if code is None:
        return f"did not end within {_REAP_SECONDS:g} s"
    return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
