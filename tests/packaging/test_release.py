"""What cannot be built here is read instead: scripts, lists of files, and the release workflow."""

from __future__ import annotations

import plistlib
import re
import struct
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def inno() -> dict[str, dict[str, str] | list[dict[str, str]]]:
    """The sections of the script for Windows: settings by name, or lists of entries."""
    sections: dict = {}
    for line in (PACKAGING / "windows" / "foretoken.iss").read_text().splitlines():
        line = line.strip()
        if re.fullmatch(r"\[\w+\]", line):
            section = sections.setdefault(line[1:-1], [])
        elif line and not line.startswith((";", "#")):
            if line.partition("=")[0].isidentifier():
                name, _, value = line.partition("=")
                section.append({name: value})
            else:
                pairs = re.findall(r'(\w+): ("[^"]*"|[^;]*)', line)
                section.append({name: value.strip('"') for name, value in pairs})
    settings = {name: value for entry in sections["Setup"] for name, value in entry.items()}
    return {**sections, "Setup": settings}


@pytest.fixture(scope="module")
def workflow() -> dict:
    return yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())


def steps(workflow: dict, job: str) -> str:
    return "\n".join(step.get("run", "") for step in workflow["jobs"][job]["steps"])


def test_windows_installs_what_the_spec_builds_for_one_person(inno):
    (files,) = inno["Files"]
    assert files["Source"] == rf"dist\{PROJECT['name']}\*"
    assert {"recursesubdirs", "createallsubdirs"} <= set(files["Flags"].split())
    assert inno["Setup"]["PrivilegesRequired"] == "lowest"
    assert inno["Setup"]["AppVersion"] == "{#Version}"
    program = rf"{{app}}\{PROJECT['name']}.exe"
    assert {entry["Filename"] for entry in inno["Icons"]} == {program, "{uninstallexe}"}
    assert [entry["Filename"] for entry in inno["Run"]] == [program]
    tasks = {entry["Name"] for entry in inno["Tasks"]}
    assert {entry["Tasks"] for entry in inno["Icons"] if "Tasks" in entry} == tasks


def test_windows_script_names_files_that_are_there(inno):
    assert (ROOT / inno["Setup"]["LicenseFile"]).is_file()
    assert inno["Setup"]["SourceDir"] == r"..\.."
    assert inno["Setup"]["SetupIconFile"] == r"build\foretoken.ico"


def test_no_part_of_the_windows_installer_is_too_large_to_be_published(inno):
    assert inno["Setup"]["DiskSpanning"] == "yes"
    assert int(inno["Setup"]["DiskSliceSize"]) < 2**31


def test_macos_lists_can_be_read():
    info = plistlib.loads((PACKAGING / "macos" / "info.plist").read_bytes())
    assert info["NSHighResolutionCapable"] is True
    assert info["NSRequiresAquaSystemAppearance"] is False  # dark windows too
    rights = plistlib.loads((PACKAGING / "macos" / "entitlements.plist").read_bytes())
    assert all(name.startswith("com.apple.security.cs.") for name in rights)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_the_script_for_the_disk_image_can_be_parsed():
    subprocess.run(["sh", "-n", str(PACKAGING / "macos" / "dmg.sh")], check=True)


def test_every_file_that_a_workflow_names_is_there():
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = file.read_text()
        assert yaml.safe_load(text)["jobs"]
        for name in re.findall(r"\b(?:packaging|\.ci)/[\w./-]+", text):
            assert (ROOT / name).exists(), name


def test_all_systems_are_built_and_tried_before_anything_is_published(workflow):
    built = workflow["jobs"]["build"]["strategy"]["matrix"]["include"]
    runners = {entry["runner"].split("-")[0] for entry in built}
    assert runners == {"ubuntu", "windows", "macos"}
    assert {entry["flavour"] for entry in built} == {"cpu", "cuda"}
    said = steps(workflow, "build")
    assert said.index("packaging/build.py") < said.index("packaging/smoke_test.py")
    assert "build" in workflow["jobs"]["publish"]["needs"]
    assert workflow["jobs"]["publish"]["if"] == "startsWith(github.ref, 'refs/tags/')"


def test_checksums_and_the_word_on_the_newest_version_are_published(workflow):
    from app.library.updates import ADDRESS

    said = steps(workflow, "publish")
    assert "sha256sum" in said
    assert ADDRESS.rpartition("/")[2] in said
    assert re.search(r'\{"version": "%s", "page": "%s"\}', said)


def test_the_constraints_hold_for_what_is_built(workflow):
    installs = re.findall(r"pip install (.*)", steps(workflow, "build"))
    assert installs
    assert all("--constraint packaging/constraints.txt" in line for line in installs)


def test_the_icon_for_windows_holds_a_png_for_each_size(tmp_path):
    file = tmp_path / "made here" / "foretoken.ico"
    command = [sys.executable, str(PACKAGING / "icon.py"), "ico", str(file)]
    subprocess.run(command, check=True)
    data = file.read_bytes()
    reserved, kind, count = struct.unpack_from("<HHH", data)
    assert (reserved, kind) == (0, 1)
    sides = []
    for index in range(count):
        side, _, _, _, _, bits, size, place = struct.unpack_from("<BBBBHHII", data, 6 + 16 * index)
        image = data[place : place + size]
        assert image.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack_from(">II", image, 16)
        assert width == height == (side or 256)
        assert bits == 32
        sides.append(width)
    assert sides == [16, 24, 32, 48, 64, 128, 256]
    assert place + size == len(data)


def test_the_icons_for_macos_have_the_sizes_that_iconutil_asks_for(tmp_path):
    folder = tmp_path / "foretoken.iconset"
    command = [sys.executable, str(PACKAGING / "icon.py"), "iconset", str(folder)]
    subprocess.run(command, check=True)
    for size in (16, 32, 128, 256, 512):
        for name, pixels in ((f"icon_{size}x{size}", size), (f"icon_{size}x{size}@2x", 2 * size)):
            image = (folder / f"{name}.png").read_bytes()
            assert struct.unpack_from(">II", image, 16) == (pixels, pixels)
