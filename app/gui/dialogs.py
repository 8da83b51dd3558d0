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
    """Where to write the record, in the format of its suffix; None if nowhere after all.

    The dialog itself asks before a file is replaced.
    """
    filters = {f"{_NAMES.get(suffix, suffix)} (*{suffix})": suffix for suffix in FORMATS}
    dialog = QFileDialog(parent, "Export", str(Path.home()), ";;".join(filters))
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(next(iter(filters.values())))
    dialog.filterSelected.connect(lambda chosen: dialog.setDefaultSuffix(filters[chosen]))
    dialog.selectFile(suggested_name(record))
    accepted = dialog.exec() == QFileDialog.DialogCode.Accepted
    dialog.deleteLater()
    return Path(dialog.selectedFiles()[0]) if accepted else None


def ask_report_path(parent: QWidget) -> Path | None:
    """Which report to show; None if none after all."""
    name, _ = QFileDialog.getOpenFileName(
        parent, "Open a report", str(Path.home()), "Reports (*.json);;All files (*)"
    )
    return Path(name) if name else None
