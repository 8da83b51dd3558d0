"""Folders that are either whole or not there, whoever is killed while making them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from app.run.problems import Problem
from app.run.sizes import bytes_in_words

Pause = Callable[[], None]
"""Called often while something long goes on; may raise Cancelled."""


def make_whole(
    destination: Path,
    build: Callable[[Path], None],
    *,
    usable: Callable[[Path], bool],
    pause: Pause,
) -> Path:
    """Lets `build` fill a new folder, then gives it the name `destination`, all at once.

    Only one process at a time builds a destination: another waits, and finds it made. The lock
    ends with its process, so what lies under a temporary name while it is held was left by one
    that was killed, and is removed; so is a destination that is not `usable`. Raises Problem where
    the folder cannot be written.
    """
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(destination.parent / f"{destination.name}.lock")
        wait_for(lock, pause)
        try:
            if not usable(destination):
                _build(destination, build)
        finally:
            lock.release()
    except OSError as error:
        raise Problem(
            f"{destination} could not be written: {error.strerror or error}.",
            "Free some space, or check that the folder may be written to.",
        ) from error
    return destination


def require_space(folder: Path, needed: int, *, variable: str = "FORETOKEN_HOME") -> None:
    """Raises Problem if the disk of this folder has fewer than `needed` bytes left.

    `variable`: what moves the folder to another disk.
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Problem(
            f"{needed:,} bytes ({bytes_in_words(needed)}) are needed in {folder}; {free:,} "
            f"({bytes_in_words(free)}) are free.",
            f"Free some space, or set {variable} to a folder on another disk.",
        )


def wait_for(lock: FileLock, pause: Pause) -> None:
    """Waits for the lock, pausing ten times a second."""
    while True:
        pause()
        try:
            lock.acquire(timeout=0.1)
            return
        except Timeout:
            continue


def _build(destination: Path, build: Callable[[Path], None]) -> None:
    """Fills a temporary folder beside the destination and renames it; leaves nothing on failure."""
    for leftover in destination.parent.glob(f"{_temporary_prefix(destination)}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    temporary = Path(
        tempfile.mkdtemp(prefix=_temporary_prefix(destination), dir=destination.parent)
    )
    try:
        build(temporary)
        if destination.exists():
            shutil.rmtree(destination)
        os.replace(temporary, destination)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _temporary_prefix(destination: Path) -> str:
    return f".{destination.name}.part-"
