"""The engine process: it alone imports torch, and only once it can already hear Stop and Quit."""

from __future__ import annotations

import logging
import os
import threading
from importlib import import_module
from multiprocessing.connection import Connection
from typing import cast

from app import files
from app.engine.inbox import GRACE_SECONDS, Inbox, receive
from app.engine.jobs import Bench, Engine
from app.engine.outbox import Outbox
from app.engine.protocol import JobProblem
from app.engine.surroundings import log_file, settle

COULD_NOT_START = 3
"""The exit code of an engine whose libraries could not be loaded."""

_log = logging.getLogger(__name__)


def main(connection: Connection, factory: str) -> None:
    """Lives as an engine until Quit, or until the other side is gone; ends the process.

    `factory`, "module:name", is called without arguments and returns a Bench.
    """
    settle()
    _log.info("an engine starts")
    inbox, outbox = Inbox(), Outbox(connection)
    reader = threading.Thread(
        target=receive, args=(connection, inbox), name="engine reader", daemon=True
    )
    reader.start()
    code = _serve(factory, inbox, outbox)
    outbox.close(GRACE_SECONDS)
    _log.info("the engine ends with code %d", code)
    logging.shutdown()
    # The interpreter's own way out runs the teardown of torch and its drivers, which may hang.
    os._exit(code)


def torch_bench() -> Bench:
    """The bench with the real models; imports torch."""
    from app.engine.torch_bench import TorchBench
    from app.library.catalogue import load_catalogue

    places = [files.shipped_catalogue(), files.user_catalogue()]
    return TorchBench(lambda: load_catalogue(places))


def _serve(factory: str, inbox: Inbox, outbox: Outbox) -> int:
    """Works until the inbox closes; the exit code."""
    try:
        bench = _made(factory)
        outbox.put(bench.ready())
    except Exception as error:
        _log.exception("the engine cannot start")
        message = f"The engine could not load its libraries: {type(error).__name__}: {error}"
        outbox.put(JobProblem(message, f"Install Foretoken again; see {log_file()}."))
        return COULD_NOT_START
    Engine(bench, inbox, outbox, log_file()).work()
    return 0


def _made(factory: str) -> Bench:
    module, _, name = factory.partition(":")
    return cast(Bench, getattr(import_module(module), name)())
