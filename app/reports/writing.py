"""Writes the files of a report: all of them whole, or none."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

from app.reports.csv_report import csv_parts
from app.reports.html_report import html_parts
from app.reports.json_report import json_parts
from app.reports.markdown_report import markdown_parts
from app.run.problems import Problem
from app.run.record import RunRecord

Parts = Callable[[RunRecord], Mapping[str, str]]
"""Makes the files of a report: the first has the format's suffix, the others lie beside it."""

FORMATS: dict[str, Parts] = {
    ".json": json_parts,
    ".csv": csv_parts,
    ".md": markdown_parts,
    ".html": html_parts,
}
"""The formats on offer, by the suffix that chooses them."""

_BESIDE: dict[str, tuple[str, ...]] = {".csv": (".rounds.csv", ".run.csv")}


def report_files(path: Path) -> list[Path]:
    """The files that a report at this path consists of. Raises Problem for an unknown suffix."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        known = ", ".join(FORMATS)
        raise Problem(f"{path} has no suffix of a report.", f"End it in one of: {known}.")
    return [path, *(path.with_suffix(beside) for beside in _BESIDE.get(suffix, ()))]


def check_report_path(path: Path, *, overwrite: bool) -> None:
    """Raises Problem where a report could not be written."""
    folder = path.parent
    if not folder.is_dir():
        raise Problem(f"The folder {folder} does not exist.", "Create it, or name another.")
    if not os.access(folder, os.W_OK):
        raise Problem(f"Nothing can be written in {folder}.", "Name another folder.")
    for file in report_files(path):
        if file.is_dir():
            raise Problem(f"{file} is a folder.", "Name a file.")
        if file.exists() and not overwrite:
            raise Problem(f"{file} is there already.", "Name another file, or allow replacing it.")


def write_report(record: RunRecord, path: Path, *, overwrite: bool) -> list[Path]:
    """Writes a report in the format of its suffix, and returns the files. Raises Problem."""
    check_report_path(path, overwrite=overwrite)
    files = report_files(path)
    parts = FORMATS[path.suffix.lower()](record)
    write_files(dict(zip(files, parts.values(), strict=True)))
    return files


def write_files(texts: Mapping[Path, str]) -> None:
    """Writes all of these files, or none. Raises Problem."""
    files = list(texts)
    path = files[0]
    begun = [file.with_name(f".foretoken-{uuid4().hex}.part") for file in files]
    try:
        for temporary, text in zip(begun, texts.values(), strict=True):
            _fill(temporary, text)
        for file, temporary in zip(files, begun, strict=True):
            temporary.replace(file)
    except OSError as error:
        remedy = "Check the disk and your rights, or name another folder."
        raise Problem(f"{path} cannot be written: {error.strerror or error}.", remedy) from error
    except UnicodeEncodeError as error:
        remedy = "Run it with a prompt that is whole Unicode."
        raise Problem(
            f"The run holds half a character, so {path} was not written.", remedy
        ) from error
    finally:
        for temporary in begun:
            temporary.unlink(missing_ok=True)


def _fill(temporary: Path, text: str) -> None:
    """Writes a new file, down to the disk."""
    with open(temporary, "x", encoding="utf-8", newline="") as page:
        page.write(text)
        page.flush()
        os.fsync(page.fileno())
