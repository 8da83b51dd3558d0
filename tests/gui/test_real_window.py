"""A real window on a real X server, driven by keys alone: run the embedded pair, stop, export."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.embedded,
    pytest.mark.skipif(
        not (shutil.which("Xvfb") and shutil.which("xdotool")), reason="needs Xvfb and xdotool"
    ),
]

PROGRAM = Path(__file__).parent / "real_window_program.py"
PATIENCE = 120.0
"""Seconds after which something has failed; nothing is expected to take nearly as long."""


class Driven:
    """The program, what it says of its state, and a keyboard."""

    def __init__(self, display: str, log: Path) -> None:
        self.environment = {**os.environ, "DISPLAY": display}
        for unwanted in ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY"):
            self.environment.pop(unwanted, None)
        self.log = log.open("w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        self.states: queue.SimpleQueue[dict] = queue.SimpleQueue()
        self.state: dict = {}
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def until(self, wanted: Callable[[dict], bool]) -> dict:
        """Waits for a state; the last one if there is none in time."""
        deadline = time.monotonic() + PATIENCE
        while not (self.state and wanted(self.state)):
            assert time.monotonic() < deadline, (self.state, self.complaints())
            assert self.process.poll() is None, (self.state, self.complaints())
            try:
                self.state = self.states.get(timeout=0.2)
            except queue.Empty:
                continue
        return self.state

    def keys(self, *keys: str) -> None:
        self._tool("key", *keys)

    def type(self, text: str) -> None:
        self._tool("type", text)

    def focus(self, name: str) -> None:
        """Gives the keyboard to a window, as there is no window manager."""
        self._tool("search", "--sync", "--onlyvisible", "--name", name, "windowfocus", "--sync")

    def complaints(self) -> str:
        self.log.flush()
        return Path(self.log.name).read_text(encoding="utf-8")

    def ended(self) -> int:
        """Waits for the end of the program; its exit code."""
        code = self.process.wait(PATIENCE)
        self.reader.join()
        self.process.stdout.close()
        return code

    def _read(self) -> None:
        for line in self.process.stdout:
            self.states.put(json.loads(line))

    def _tool(self, *arguments: str) -> None:
        command = ["xdotool", *arguments]
        subprocess.run(command, env=self.environment, check=True, timeout=PATIENCE)


@pytest.fixture
def display(tmp_path: Path) -> Iterator[str]:
    """An X server of the test's own."""
    near, far = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(far), "-screen", "0", "1600x1000x24", "-nolisten", "tcp"],
        pass_fds=[far],
        stderr=subprocess.DEVNULL,
    )
    os.close(far)
    with os.fdopen(near) as number:
        name = f":{number.readline().strip()}"
    yield name
    server.terminate()
    server.wait()


@pytest.fixture
def driven(display: str, tmp_path: Path) -> Iterator[Driven]:
    made = Driven(display, tmp_path / "complaints.txt")
    yield made
    if made.process.poll() is None:
        made.process.kill()
    made.ended()
    made.log.close()


def test_the_main_job_by_keyboard(driven, tmp_path):
    driven.until(lambda state: state["phase"] == "ready" and not state["job"])
    driven.focus("Foretoken")
    driven.until(lambda state: state["active"])
    driven.keys("ctrl+Return")
    first = driven.until(lambda state: state["job"] == "run" and state["words"] == 2)["run"]
    driven.keys("Escape")
    driven.until(lambda state: state["outcome"] == "cancelled")
    driven.keys("ctrl+Return")
    driven.until(lambda state: state["outcome"] == "finished" and state["run"] != first)
    driven.keys("ctrl+e")
    driven.focus("Export")
    driven.keys("ctrl+a")
    driven.type(str(tmp_path / "report.json"))
    driven.keys("Return")
    driven.until(lambda state: state["notice"] and "Written" in state["notice"])
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["outcome"] == "finished"
    driven.focus("Foretoken")
    driven.keys("ctrl+q")
    assert driven.ended() == 0
    assert driven.complaints() == ""
