"""The installer for one person brings all it needs, and takes all of it away again."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINUX = ROOT / "packaging" / "linux"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="scripts for Linux")


@pytest.fixture
def unpacked(tmp_path) -> Path:
    """What the self-extracting file unpacks, with a program of three lines."""
    folder = tmp_path / "unpacked here"
    (folder / "foretoken" / "_internal").mkdir(parents=True)
    for name in ("install.sh", "uninstall.sh", "foretoken.desktop"):
        shutil.copy(LINUX / name, folder)
    shutil.copy(ROOT / "resources" / "icons" / "foretoken.svg", folder)
    program = folder / "foretoken" / "foretoken"
    program.write_text('#!/bin/sh\necho "it runs with $#"\n')
    program.chmod(0o755)
    return folder


@pytest.fixture
def person(tmp_path) -> Path:
    home = tmp_path / "Zoë's home"
    (home / ".local" / "share" / "foretoken" / "data").mkdir(parents=True)
    (home / ".local" / "share" / "foretoken" / "data" / "history.sqlite").write_bytes(b"runs")
    return home


def call(script: Path, home: Path) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    done = subprocess.run(
        ["sh", str(script)], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def files(home: Path) -> set[str]:
    found = {path for path in home.rglob("*") if not path.is_dir() or path.is_symlink()}
    return {path.relative_to(home).as_posix() for path in found}


def test_it_installs_a_command_a_menu_entry_and_an_icon(unpacked, person):
    told = call(unpacked / "install.sh", person)
    command = person / ".local" / "bin" / "foretoken"
    assert subprocess.check_output([str(command), "a"], text=True) == "it runs with 1\n"
    entry = (person / ".local/share/applications/foretoken.desktop").read_text()
    (line,) = [line for line in entry.splitlines() if line.startswith("Exec=")]
    assert line == f'Exec="{person}/.local/lib/foretoken/foretoken"'
    assert (person / ".local/share/icons/hicolor/scalable/apps/foretoken.svg").is_file()
    assert "uninstall.sh" in told


def test_installing_again_replaces_the_program_whole(unpacked, person):
    call(unpacked / "install.sh", person)
    old = person / ".local" / "lib" / "foretoken" / "_internal" / "old.so"
    old.write_bytes(b"")
    call(unpacked / "install.sh", person)
    assert not old.exists()
    assert (person / ".local" / "bin" / "foretoken").resolve().is_file()


def test_uninstalling_leaves_the_persons_own_files_and_nothing_else(unpacked, person):
    before = files(person)
    call(unpacked / "install.sh", person)
    assert files(person) > before
    call(person / ".local" / "lib" / "foretoken" / "uninstall.sh", person)
    assert files(person) == before


def test_a_command_of_somebody_elses_is_left_alone(unpacked, person):
    call(unpacked / "install.sh", person)
    command = person / ".local" / "bin" / "foretoken"
    command.unlink()
    command.write_text("mine")
    call(person / ".local" / "lib" / "foretoken" / "uninstall.sh", person)
    assert command.read_text() == "mine"


@pytest.mark.parametrize("script", sorted(LINUX.glob("*.sh")), ids=lambda path: path.name)
def test_the_scripts_can_be_parsed_and_run(script):
    subprocess.run(["sh", "-n", str(script)], check=True)
    assert os.access(script, os.X_OK)


def test_the_menu_entry_names_what_is_installed():
    entry = (LINUX / "foretoken.desktop").read_text()
    assert "\nExec=foretoken\n" in entry
    assert "\nIcon=foretoken\n" in entry
    assert "\nTerminal=false\n" in entry


def test_the_debian_package_asks_for_what_qt_and_the_window_need():
    control = (LINUX / "control").read_text()
    asked = set(re.findall(r"[a-z0-9.+-]+", control.partition("Depends:")[2].partition("\nRec")[0]))
    check = (ROOT / ".ci" / "run").read_text()
    listed = dict(re.findall(r"^  (lib\S+?\.so\.\d+):(\S+)$", check, re.M))
    # Others of the list depend on the first two; the third comes along with the program.
    bundled = {"libxcb-render0", "libxcb-util1", "libgssapi-krb5-2"}
    assert set(listed.values()) - bundled <= asked
    assert not any("python" in name for name in asked)
