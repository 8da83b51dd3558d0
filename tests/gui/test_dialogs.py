"""Dialogs for files open where a file was last chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from scripted_engine import record_of, run_of

from app.gui import dialogs


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home, in which choices are kept too."""
    home = tmp_path / "home"
    home.mkdir()
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(home))
    monkeypatch.setenv("FORETOKEN_HOME", str(home / "foretoken"))
    return home


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a person chooses next; where each dialog opened is put behind that."""
    told: list[str] = [""]

    def file(_parent, _title, folder, *_filters):
        told.append(folder)
        return told[0], ""

    monkeypatch.setattr(QFileDialog, "getOpenFileName", staticmethod(file))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", staticmethod(lambda *a: file(*a)[0]))

    def accept(dialog: QFileDialog) -> QFileDialog.DialogCode:
        told.append(dialog.directory().absolutePath())
        dialog.selectFile(told[0])
        return QFileDialog.DialogCode.Accepted

    monkeypatch.setattr(QFileDialog, "exec", accept)
    return told


def test_the_first_dialog_opens_at_home(person, answers):
    assert dialogs.ask_report_path(None) is None
    assert answers[1:] == [str(person)]


def test_every_dialog_opens_where_the_one_before_was_left(person, answers, tmp_path):
    folders = [tmp_path / str(number) for number in range(6)]
    for folder in folders:
        folder.mkdir()
    record = record_of(run_of())
    asks = (
        lambda: dialogs.ask_report_path(None),
        lambda: dialogs.ask_import_path(None),
        lambda: dialogs.ask_prompts_path(None, ""),
        lambda: dialogs.ask_export_path(None, record),
        lambda: dialogs.ask_archive_path(None),
    )
    for folder, ask in zip(folders, asks, strict=False):
        answers[0] = str(folder / "a.json")
        assert str(ask()).startswith(str(folder))
    answers[0] = str(folders[5])
    assert dialogs.ask_folder(None, "A folder", "") == str(folders[5])
    answers[0] = ""
    dialogs.ask_report_path(None)
    assert answers[1:] == [str(person), *map(str, folders)]


def test_a_place_that_is_asked_from_goes_before_it(person, answers, tmp_path):
    dialogs.ask_folder(None, "A folder", str(tmp_path))
    assert answers[1:] == [str(tmp_path)]


def test_a_folder_that_is_gone_is_not_offered(person, answers, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    answers[0] = str(folder / "a.json")
    dialogs.ask_report_path(None)
    folder.rmdir()
    assert dialogs.last_folder() == str(person)
