"""Every check in turn; this process imports neither torch nor Qt."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from app.selftest import embedded as shipped
from app.selftest import engine, surroundings
from app.selftest.parts import run_part
from app.selftest.result import Result

_FOLDERS = ("FORETOKEN_HOME", "TORCHINDUCTOR_CACHE_DIR")
"""Variables that say where this program, and torch, leave files."""

_THREADS = {"OMP_NUM_THREADS": "1"}
"""Models as small as these lose by more threads, and most on a busy machine."""


def run_selftest(
    show: Callable[[str], None], *, embedded: bool = False, deep: bool = False
) -> bool:
    """Shows one line a check as it is done; whether all went well."""
    failed = 0
    for result in _deep_results() if deep else _results(embedded):
        show(result.line)
        failed += result.failed
    show(f"{failed} failed." if failed else "All is well.")
    return not failed


def _results(embedded: bool) -> Iterator[Result]:
    yield from surroundings.checks()
    with _own_home() as home:
        yield from run_part("window libraries", "app.selftest.plot", home)
        yield from run_part("model libraries", "app.selftest.models", home)
        yield from engine.checks(home)
    if embedded:
        yield from engine.embedded_checks()


def _deep_results() -> Iterator[Result]:
    """The checks that are proved by planted faults; the account takes the embedded pair if it can.

    Its passes are long enough to be timed on a busy machine; those of tiny models hardly are.
    """
    here = shipped.has_embedded(shipped.catalogue())
    with _own_home() as home:
        yield from run_part("deep checks", "app.selftest.deep", home)
        if not here:
            yield from run_part("account", "app.selftest.timed", home)
    if here:
        yield from run_part("account", "app.selftest.timed", Path())


@contextmanager
def _own_home() -> Iterator[Path]:
    """A home folder for the program that is gone afterwards; child processes have it too."""
    before = {name: os.environ.get(name) for name in (*_FOLDERS, *_THREADS)}
    # An engine that was just ended may still hold its log, which Windows does not delete then.
    with tempfile.TemporaryDirectory(prefix="foretoken-", ignore_cleanup_errors=True) as home:
        os.environ.update(dict.fromkeys(_FOLDERS, home) | _THREADS)
        try:
            yield Path(home)
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
