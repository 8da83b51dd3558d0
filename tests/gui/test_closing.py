"""Closing at any moment ends everything, in time, and without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "closing_program.py"


def ended(*arguments: object, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, arguments)],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "FORETOKEN_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("how", "milliseconds", "during"),
    [
        ("close", 0, "start"),
        ("close", 50, "start"),
        ("close", 50, "prepare"),
        ("close", 50, "run"),
        ("close", 500, "run"),
        ("twice", 50, "run"),
        ("quit", 50, "run"),
        ("interrupt", 50, "run"),
        ("interrupt", 50, "prepare"),
    ],
)
def test_closing_leaves_nothing(how, milliseconds, during, tmp_path):
    found = ended(how, milliseconds, during, home=tmp_path)
    said = found.stderr.replace("This plugin does not support propagateSizeHints()\n", "")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "threads left: []" in found.stdout
    assert said == ""


def test_a_bug_closes_in_order_and_is_told_by_the_exit_code(tmp_path):
    found = ended("fault", 50, "run", home=tmp_path)
    assert found.returncode == 1
    assert "threads left: []" in found.stdout
    assert "RuntimeError: a bug" in found.stderr


def test_closing_while_an_export_is_written_waits_for_it(window, play, monkeypatch, tmp_path):
    from scripted_engine import run_of

    from app.gui import report_exchange

    window.run()
    play(*run_of())
    monkeypatch.setattr(report_exchange, "ask_export_path", lambda *_: tmp_path / "x.json")
    window.export()
    window.close()
    assert (tmp_path / "x.json").is_file()
    assert not window.page.notice.isVisible()
