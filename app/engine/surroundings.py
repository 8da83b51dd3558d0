"""What the engine process lives in: its log, its streams, its environment, its signals."""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TextIO

from app import files

LOG_BYTES = 1_000_000
"""A log longer than this makes room for a new one when an engine starts; one old one is kept."""

_ENVIRONMENT = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def log_file() -> Path:
    """Where every engine of this person writes."""
    return files.log_folder() / "engine.log"


def settle() -> None:
    """Makes this process an engine: call it before anything heavy is imported.

    All output, also that of compiled libraries and of a crash, goes to the log: the terminal
    belongs to the program that started the engine, and so does the answer to Ctrl+C in it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.update(_ENVIRONMENT)
    stream = _open_log(log_file())
    for descriptor in (1, 2):
        os.dup2(stream.fileno(), descriptor)
    sys.stdout = sys.stderr = stream
    faulthandler.enable(stream)
    form = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(stream=stream, level=logging.WARNING, format=form, force=True)
    logging.getLogger("app").setLevel(logging.INFO)
    logging.captureWarnings(True)


def _open_log(file: Path) -> TextIO:
    """The log, opened to append; nothing is kept where no log can be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _make_room(file)
        return file.open("a", encoding="utf-8", errors="backslashreplace", buffering=1)
    except OSError:
        return open(os.devnull, "w", encoding="utf-8")


def _make_room(file: Path) -> None:
    """Moves a long log aside. Windows refuses while another engine writes it: then it stays."""
    try:
        if file.stat().st_size > LOG_BYTES:
            file.replace(file.with_name(f"{file.name}.1"))
    except (FileNotFoundError, PermissionError):
        return
