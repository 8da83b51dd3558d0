"""Folders are whole or not there, whoever is killed and however many build them at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app.library.whole_folder import make_whole
from app.run.problems import Cancelled, Problem

ROOT = Path(__file__).resolve().parents[2]
BUILDER = """
import sys, time
from pathlib import Path
from app.library.whole_folder import make_whole

def build(folder):
    (folder / "half").write_text(str(time.time()), encoding="utf-8")
    print("building", flush=True)
    time.sleep(float(sys.argv[2]))
    (folder / "whole").write_text("x", encoding="utf-8")

usable = lambda folder: (folder / "whole").exists()
make_whole(Path(sys.argv[1]), build, usable=usable, pause=lambda: None)
print("done", flush=True)
"""


def start_builder(destination: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BUILDER, str(destination), str(seconds)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def build(folder: Path) -> None:
    (folder / "whole").write_text("x", encoding="utf-8")


def usable(folder: Path) -> bool:
    return (folder / "whole").exists()


def pause() -> None:
    pass


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_it_is_built_once(tmp_path: Path) -> None:
    destination = tmp_path / "deep" / "é 模型"
    assert make_whole(destination, build, usable=usable, pause=pause) == destination
    assert make_whole(destination, lambda _: pytest.fail("built twice"), usable=usable, pause=pause)
    assert names(destination.parent) == ["é 模型"]


@pytest.mark.parametrize("error", [Cancelled, Problem("no"), KeyboardInterrupt])
def test_what_fails_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    def fail(folder: Path) -> None:
        build(folder)
        raise error

    with pytest.raises((Cancelled, Problem, KeyboardInterrupt)):
        make_whole(tmp_path / "model", fail, usable=usable, pause=pause)
    assert names(tmp_path) == []
    make_whole(tmp_path / "model", build, usable=usable, pause=pause)


def test_what_is_not_usable_is_built_anew(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "rest").touch()
    make_whole(tmp_path / "model", build, usable=usable, pause=pause)
    assert names(tmp_path / "model") == ["whole"]


def test_a_killed_builder_leaves_nothing_that_is_used(tmp_path: Path) -> None:
    destination = tmp_path / "model"
    with start_builder(destination, 60) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "building\n"
        killed.kill()
    assert not destination.exists()
    assert len(names(tmp_path)) == 1
    make_whole(destination, build, usable=usable, pause=pause)
    assert names(tmp_path) == ["model"]


def test_two_processes_at_once_build_it_once(tmp_path: Path) -> None:
    destination = tmp_path / "model"
    builders = [start_builder(destination, 0.3) for _ in range(2)]
    said = [builder.communicate(timeout=60)[0] for builder in builders]
    assert sorted(said) == ["building\ndone\n", "done\n"]
    assert names(tmp_path) == ["model"]


def test_waiting_for_another_can_be_cancelled(tmp_path: Path) -> None:
    holding, release = threading.Event(), threading.Event()

    def hold(folder: Path) -> None:
        holding.set()
        release.wait(30)
        build(folder)

    def first() -> None:
        make_whole(tmp_path / "model", hold, usable=usable, pause=pause)

    thread = threading.Thread(target=first)
    thread.start()
    holding.wait(30)
    end = time.monotonic() + 0.3

    def cancel() -> None:
        if time.monotonic() > end:
            raise Cancelled

    with pytest.raises(Cancelled):
        make_whole(tmp_path / "model", build, usable=usable, pause=cancel)
    release.set()
    thread.join(30)
    assert usable(tmp_path / "model")


def test_a_place_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Problem, match="could not be written"):
        make_whole(tmp_path / "file" / "model", build, usable=usable, pause=pause)
