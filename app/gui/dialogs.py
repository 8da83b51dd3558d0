"""The dialogs: which file or folder, and whether to delete."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSettings, Qt
from PySide6.QtWidgets import QFileDialog, QInputDialog, QMessageBox, QWidget

from app import files
from app.library.kept_texts import IN_MEMORY, KeptSize
from app.library.prompts import SUFFIXES
from app.reports import FORMATS, suggested_name
from app.run.record import RunRecord

_NAMES = {
    ".json": "JSON, the whole record",
    ".csv": "CSV, a row a token",
    ".md": "Markdown, to read",
    ".html": "HTML, a page with charts",
}

_LAST_FOLDER = "last folder"


def ask_export_path(parent: QWidget, record: RunRecord) -> Path | None:
    """Where to write the record, in the format of its suffix; None if nowhere after all.

    The dialog itself asks before a file is replaced.
    """
    filters = {f"{_NAMES.get(suffix, suffix)} (*{suffix})": suffix for suffix in FORMATS}
    dialog = QFileDialog(parent, "Export", last_folder(), ";;".join(filters))
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(next(iter(filters.values())))
    dialog.filterSelected.connect(lambda chosen: dialog.setDefaultSuffix(filters[chosen]))
    dialog.selectFile(suggested_name(record))
    accepted = dialog.exec() == QFileDialog.DialogCode.Accepted
    dialog.deleteLater()
    return _chosen(dialog.selectedFiles()[0] if accepted else "")


def ask_report_path(parent: QWidget) -> Path | None:
    """Which report to show; None if none after all."""
    name, _ = QFileDialog.getOpenFileName(
        parent, "Open a report", last_folder(), "Reports (*.json);;All files (*)"
    )
    return _chosen(name)


def ask_archive_path(parent: QWidget) -> Path | None:
    """Where to write kept runs; None if nowhere after all. The dialog asks before it replaces."""
    dialog = QFileDialog(parent, "Export runs", last_folder(), "Kept runs (*.jsonl)")
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(".jsonl")
    dialog.selectFile("foretoken-runs.jsonl")
    accepted = dialog.exec() == QFileDialog.DialogCode.Accepted
    dialog.deleteLater()
    return _chosen(dialog.selectedFiles()[0] if accepted else "")


def ask_import_path(parent: QWidget) -> Path | None:
    """Which file of runs to take in; None if none after all."""
    name, _ = QFileDialog.getOpenFileName(
        parent, "Import runs", last_folder(), "Runs (*.jsonl *.json);;All files (*)"
    )
    return _chosen(name)


def ask_folder(parent: QWidget, title: str, at: str) -> str | None:
    """Which folder, looked for from a place; None if none after all."""
    name = QFileDialog.getExistingDirectory(parent, title, at or last_folder())
    _note_folder(name)
    return name or None


def ask_prompts_path(parent: QWidget, at: str) -> str | None:
    """Which file of prompts, looked for from a place; None if none after all."""
    kinds = " ".join(f"*{suffix}" for suffix in SUFFIXES)
    name, _ = QFileDialog.getOpenFileName(
        parent, "Prompts", at or last_folder(), f"Prompts ({kinds});;All files (*)"
    )
    _chosen(name)
    return name or None


def last_folder() -> str:
    """The folder that a file was last chosen in, or the person's own if that is gone."""
    kept = str(_choices().value(_LAST_FOLDER, ""))
    return kept if kept and Path(kept).is_dir() else str(Path.home())


def ask_config(parent: QWidget) -> str | None:
    """The JSON of vLLM's `--speculative-config`; None if none after all."""
    text, agreed = QInputDialog.getMultiLineText(
        parent, "Settings from vLLM", "The JSON of vLLM's --speculative-config:"
    )
    return text if agreed else None


def confirm_delete(parent: QWidget, number: int) -> bool:
    """Whether so many runs are really to be deleted; anything but a clear yes is no."""
    what = f"these {number} runs" if number > 1 else "this run"
    told = "Their records, tags and notes cannot be brought back."
    return _confirm(parent, "Delete runs", f"Delete {what} for good?", told, yes="Delete")


def confirm_remove(
    parent: QWidget, title: str, size: str, paths: Sequence[Path], remarks: str
) -> bool:
    """Whether these folders and files of a model are really to be removed; `remarks`: what to
    know of that, and what is left, and why.
    """
    told = "\n".join(filter(None, (*map(str, paths), "", remarks, "It can be fetched again.")))
    return _confirm(parent, "Remove a model", f"Remove {size} of {title}?", told, yes="Remove")


def confirm_forget(parent: QWidget, sizes: Sequence[KeptSize]) -> bool:
    """Whether the texts that suffix decoding copies from are really to be let go."""
    told = [f"{one.target}: {one.texts} texts, {one.tokens} tokens" for one in sizes]
    told += ["", IN_MEMORY, "Suffix decoding copies from them; the history of runs is not touched."]
    question = "Let go of all texts that are kept of earlier runs?"
    return _confirm(parent, "Kept texts", question, "\n".join(told), yes="Let go")


def _chosen(name: str) -> Path | None:
    """The file of this name, whose folder is kept in mind; None for no name."""
    if not name:
        return None
    _note_folder(str(Path(name).parent))
    return Path(name)


def _note_folder(folder: str) -> None:
    """The next dialog opens in this folder, at the next start too."""
    if folder:
        choices = _choices()
        choices.setValue(_LAST_FOLDER, folder)
        choices.sync()


def _choices() -> QSettings:
    return QSettings(str(files.window_choices()), QSettings.Format.IniFormat)


def _confirm(parent: QWidget, title: str, question: str, told: str, *, yes: str) -> bool:
    """Asks; anything but a clear yes is no."""
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setWindowTitle(title)
    box.setText(question)
    box.setInformativeText(told)
    agree = box.addButton(yes, QMessageBox.ButtonRole.DestructiveRole)
    box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
    box.exec()
    chosen = box.clickedButton() is agree
    box.deleteLater()
    return chosen
