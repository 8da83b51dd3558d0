"""What becomes of an engine when the program that started it ends, however it does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from engine_watch import PATIENCE, wait_for

PARENT = """
import sys, time
from app.engine.client import EngineClient
from app.engine.protocol import EngineEnded, Run
from app.run.preparation import Prepare, Prepared, EngineReady
from app.run.events import Progress
from fake_bench import settings_of
import psutil

def main():
    client = EngineClient("fake_bench:FakeBench")
    client.send({command})
    heard = []
    while not any(isinstance(message, {sign}) for message in heard):
        heard += client.drain()
        assert not any(isinstance(message, EngineEnded) for message in heard)
        time.sleep(0.01)
    children = [c for c in psutil.Process().children() if "spawn_main" in " ".join(c.cmdline())]
    if sys.stdout is not None:
        print(*[child.pid for child in children], flush=True)
    {then}

if __name__ == "__main__":
    main()
"""


def _run_parent(
    folder: Path, then: str, command: str, sign: str, redirections: str = ""
) -> subprocess.Popen[str]:
    """A process with an engine that sends `command`, waits for `sign`, tells its child and ends."""
    script = folder / "parent.py"
    script.write_text(PARENT.format(then=then, command=command, sign=sign), encoding="utf-8")
    here = Path(__file__).parent
    paths = os.pathsep.join([str(here.parents[1]), str(here)])
    environment = os.environ | {"PYTHONPATH": paths, "FORETOKEN_HOME": str(folder)}
    words = [sys.executable, str(script)]
    if redirections:
        words = ["sh", "-c", f'exec "$0" "$1" {redirections}', *words]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder)


@pytest.mark.parametrize(
    ("command", "sign"),
    [
        ("Prepare('here')", "EngineReady"),
        ("Prepare('stuck')", "Progress"),
        ("Run('a', settings_of(rounds=100_000, step=0.005))", "Progress"),
    ],
)
def test_an_engine_ends_with_a_parent_that_is_killed(
    tmp_path: Path, command: str, sign: str
) -> None:
    with _run_parent(tmp_path, "time.sleep(600)", command, sign) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    _wait_until_gone(child)


def test_a_parent_that_forgets_to_close_is_not_held_up(tmp_path: Path) -> None:
    with _run_parent(tmp_path, "pass", "Prepare('stuck')", "Progress") as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert parent.wait(PATIENCE) == 0
    _wait_until_gone(child)


@pytest.mark.skipif(os.name != "posix", reason="closes streams as a POSIX shell does")
def test_a_parent_without_streams_has_an_engine(tmp_path: Path) -> None:
    then = "open('lived', 'w').close(); client.close()"
    with _run_parent(tmp_path, then, "Prepare('chatty')", "Prepared", "<&- >&- 2>&-") as parent:
        assert parent.wait(PATIENCE) == 0
    assert (tmp_path / "lived").exists()


def _wait_until_gone(process: psutil.Process) -> None:
    """Fails unless it ends; one that nobody has buried yet counts as ended."""

    def gone() -> bool:
        try:
            return process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    wait_for(gone)
