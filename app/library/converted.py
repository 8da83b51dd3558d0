"""Where converted models lie in the cache, and how they come there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

from app import files
from app.library.gguf_folder import CONVERSION, convert_gguf
from app.library.preflight import check
from app.library.whole_folder import Pause, make_whole
from app.run.events import Progress
from app.run.problems import Problem


def converted_folder(name: str, identity: str) -> Path:
    """Where the conversion of a GGUF file lies, made or not; `identity` changes with the file."""
    key = hashlib.sha256(f"{CONVERSION}\n{identity}".encode()).hexdigest()[:12]
    return files.cache_folder() / "converted" / f"{plain_name(name)}-{key}"


def file_identity(file: Path) -> str:
    """What changes when a file on this machine is another one: its place, size and time."""
    facts = file.stat()
    return f"{file.resolve()}\n{facts.st_size}\n{facts.st_mtime_ns}"


def plain_name(name: str) -> str:
    """The name as every file system takes it."""
    return re.sub(r"[^\w.-]", "_", name)[:60].strip(".") or "model"


def is_whole(folder: Path) -> bool:
    """Whether a conversion is there and passes every check made before loading."""
    try:
        check(folder)
    except Problem:
        return False
    return True


def convert_into(
    destination: Path,
    file: Path,
    *,
    source: str,
    report: Callable[[Progress], None],
    pause: Pause,
) -> Path:
    """The whole conversion at this place, made now if it is not there yet."""

    def build(folder: Path) -> None:
        convert_gguf(file, folder, source=source, report=report, pause=pause)

    return make_whole(destination, build, usable=is_whole, pause=pause)
