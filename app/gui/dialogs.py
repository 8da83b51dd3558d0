"""The file dialogs."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget

from app.reports import FORMATS, suggested_name
from app.run.record import RunRecord

_NAMES = {
    ".json": "JSON, the whole record",
    ".csv": "CSV, a row a token",
    ".md": "Markdown, to read",
}


def ask_export_path(parent: QWidget, record: RunRecord) -> Path | None:
    """Where to write the record; the suffix says in which format. None if the person changed mind."""
    filters = [f"{_NAMES.get(suffix, suffix[1:].upper())} (*{suffix})" for suffix in FORMATS]
    first = Path.home() / f"{suggested_name(record)}.json"
    name, chosen = QFileDialog.getSaveFileName(parent, "Export", str(first), ";;".join(filters))
    if not name:
        return None
    path = Path(name)
    if path.suffix.lower() in FORMATS:
        return path
    return path.with_name(path.name + list(FORMATS)[filters.index(chosen)])


def ask_report_path(parent: QWidget) -> Path | None:
    """Which report to show. None if the person changed mind."""
    name, _ = QFileDialog.getOpenFileName(
        parent, "Open a report", str(Path.home()), "Reports (*.json);;All files (*)"
    )
    return Path(name) if name else None
