"""Makes a Debian package and a self-extracting installer of the frozen program.

    python packaging/linux/packages.py [deb] [run]

They lie in `dist` afterwards. The first needs dpkg-deb, the second Debian's makeself and xz.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from string import Template

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DIST = ROOT / "dist"
PROGRAM = DIST / "foretoken"
ICON = ROOT / "resources" / "icons" / "foretoken.svg"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NAME, VERSION = PROJECT["name"], PROJECT["version"]
MACHINE = os.uname().machine
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[MACHINE]


def deb(work: Path) -> Path:
    """The Debian package: the program in /usr/lib, a link to it, a menu entry, its licences."""
    tree = work / "deb"
    copy(PROGRAM, tree / "usr/lib" / NAME)
    link = tree / "usr/bin" / NAME
    link.parent.mkdir(parents=True)
    link.symlink_to(f"../lib/{NAME}/{NAME}")
    copy(HERE / "foretoken.desktop", tree / "usr/share/applications/foretoken.desktop")
    copy(ICON, tree / "usr/share/icons/hicolor/scalable/apps/foretoken.svg")
    copy(ROOT / "LICENSE", tree / "usr/share/doc" / NAME / "copyright")
    kilobytes = sum(f.lstat().st_size for f in tree.rglob("*") if not f.is_dir()) // 1024
    control = Template((HERE / "control").read_text(encoding="utf-8")).substitute(
        name=NAME,
        version=VERSION,
        architecture=ARCHITECTURE,
        kilobytes=kilobytes,
        description=PROJECT["description"].partition(":")[0],
    )
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN" / "control").write_text(control, encoding="utf-8")
    package = DIST / f"{NAME}_{VERSION}_{ARCHITECTURE}.deb"
    command = ["dpkg-deb", "--root-owner-group", "-Zxz", "-z6", "--build"]
    subprocess.run([*command, str(tree), str(package)], check=True)
    return package


def run(work: Path) -> Path:
    """The installer for everyone else: one file that unpacks itself and installs for one person."""
    tree = work / "run"
    copy(PROGRAM, tree / NAME)
    for file in (HERE / "install.sh", HERE / "uninstall.sh", HERE / "foretoken.desktop", ICON):
        copy(file, tree / file.name)
    installer = DIST / f"{NAME}-{VERSION}-linux-{MACHINE}.run"
    command = ["makeself", "--xz", "--threads", "0", "--nox11", "--sha256"]
    command += [str(tree), str(installer), f"Foretoken {VERSION}", "./install.sh"]
    subprocess.run(command, check=True)
    return installer


def copy(source: Path, target: Path) -> None:
    """A copy that anyone may read, whatever the umask was when the source was made."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy(source, target)
    for place in (target, *target.rglob("*")):
        if not place.is_symlink():
            place.chmod(0o755 if place.is_dir() or os.access(place, os.X_OK) else 0o644)


MAKERS: dict[str, Callable[[Path], Path]] = {"deb": deb, "run": run}


def main(arguments: list[str]) -> int:
    """Makes what was asked for, else all of it; returns the exit code."""
    unknown = set(arguments) - set(MAKERS)
    if unknown or not PROGRAM.is_dir():
        print(__doc__ if unknown else f"Build {PROGRAM} first.", file=sys.stderr)
        return 2
    for kind in arguments or MAKERS:
        work = ROOT / "build" / "linux"
        shutil.rmtree(work, ignore_errors=True)
        made = MAKERS[kind](work)
        shutil.rmtree(work)
        print(f"{made.name}: {made.stat().st_size / 1e6:,.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
