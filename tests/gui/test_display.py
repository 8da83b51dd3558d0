"""Where no window can open, one line says why."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.gui.display import obstacle
from app.gui.qt_libraries import QT_NEEDS, X11_NEEDS

ROOT = Path(__file__).resolve().parents[2]


def start(**environment: str) -> subprocess.CompletedProcess[str]:
    dropped = {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}
    inherited = {name: value for name, value in os.environ.items() if name not in dropped}
    return subprocess.run(
        [sys.executable, "-m", "app"],
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


def with_unreadable(folder: Path, *libraries: str) -> dict[str, str]:
    """An environment in which these libraries cannot be loaded: empty files stand before them."""
    for name in libraries:
        (folder / name).touch()
    return {"LD_LIBRARY_PATH": str(folder)}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems bring all")
def test_every_missing_library_is_named_with_its_package(tmp_path):
    libraries = ("libxcb-icccm.so.4", "libxcb-keysyms.so.1", "libxkbcommon-x11.so.0")
    found = start(DISPLAY=":987", **with_unreadable(tmp_path, *libraries))
    assert found.returncode == 2
    assert all(name in found.stderr for name in libraries)
    packages = "sudo apt install libxkbcommon-x11-0 libxcb-icccm4 libxcb-keysyms1;"
    assert packages in found.stderr
    assert found.stderr.count("\n") == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems bring all")
def test_what_only_an_x_server_needs_is_not_asked_of_other_platforms(tmp_path):
    hidden = with_unreadable(tmp_path, "libxcb-icccm.so.4", "libfontconfig.so.1")
    found = start(QT_QPA_PLATFORM="offscreen", **hidden)
    assert found.returncode == 2
    assert "sudo apt install libfontconfig1;" in found.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems bring all")
def test_a_library_that_is_not_in_the_list_is_named_too(tmp_path):
    found = start(DISPLAY=":987", **with_unreadable(tmp_path, "libQt6XcbQpa.so.6"))
    assert found.returncode == 2
    assert "libQt6XcbQpa.so.6: file too short" in found.stderr
    assert found.stderr.count("\n") == 1


def test_the_machine_that_tests_gets_every_library():
    installed = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for library, package in {**QT_NEEDS, **X11_NEEDS}.items():
        assert f"  {library}:{package}\n" in installed


def test_the_readme_names_packages_of_the_list():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = re.search(r"`sudo apt install ([^`]+)`", readme)
    assert named
    assert set(named[1].split()) <= {*QT_NEEDS.values(), *X11_NEEDS.values()}


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
