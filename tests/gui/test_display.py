"""Where no window can open, one line says why."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from app.gui.display import obstacle


def start(**environment: str) -> subprocess.CompletedProcess[str]:
    dropped = {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}
    inherited = {name: value for name, value in os.environ.items() if name not in dropped}
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from app.gui.application import main; sys.exit(main())",
        ],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux may lack a display")
@pytest.mark.parametrize(
    ("environment", "word"),
    [
        ({}, "WAYLAND_DISPLAY"),
        ({"DISPLAY": ":987"}, "DISPLAY=:987"),
        ({"QT_QPA_PLATFORM": "bogus"}, "bogus"),
    ],
)
def test_one_line_and_exit_code_2(environment, word):
    found = start(**environment)
    assert found.returncode == 2
    assert word in found.stderr
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize("asked", ["offscreen", "offscreen:size=1", "minimal"])
def test_a_platform_that_the_person_chose_is_respected(asked, monkeypatch):
    monkeypatch.setenv("QT_QPA_PLATFORM", asked)
    assert obstacle() is None


@pytest.mark.parametrize("name", ["QT_PLUGIN_PATH", "QT_QPA_PLATFORM_PLUGIN_PATH"])
def test_plugins_of_another_qt_are_not_taken_for_ours(tmp_path, name):
    """Other packages set these for the Qt that they bring along."""
    broken = tmp_path / "platforms" / "libqoffscreen.so"
    broken.parent.mkdir()
    broken.write_bytes(b"no library")
    code = "from PySide6.QtWidgets import QApplication; print(QApplication([]).platformName())"
    for folder in (tmp_path, tmp_path / "nothing here"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "QT_QPA_PLATFORM": "offscreen", name: str(folder)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stdout == "offscreen\n", done.stderr
