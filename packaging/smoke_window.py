"""The frozen window and its processes, seen from outside: what /proc and the X server tell (Linux).

Standard library only, and xdotool for what is on the screen.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

_START_SECONDS = 120.0
_END_SECONDS = 20.0
_SETTLE_SECONDS = 3.0
_POLL_SECONDS = 0.05
_ASK_SECONDS = 4.0


class Window:
    """A started program with a window; leaving the context ends whatever is left of it."""

    def __init__(self, program: Path, environment: dict[str, str], folder: Path) -> None:
        self._program = program
        self._environment = environment
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed on leaving
        self._start = time.monotonic()
        self._process = subprocess.Popen(
            [str(program)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
        )

    def __enter__(self) -> Window:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._errors.close()

    def processes(self) -> list[int]:
        """Every process that runs this program's file."""
        return [pid for pid in _pids() if _link(pid) == str(self._program)]

    def wait_for_engine(self) -> str:
        """Waits until one process holds torch; what there is then, and a moment later.

        Raises ValueError unless that is one process with Qt, one with torch, and none with both.
        """
        self._until(lambda: bool(self._holding("libtorch_cpu")), "no engine process")
        seconds = time.monotonic() - self._start
        time.sleep(_SETTLE_SECONDS)
        qt, torch = self._holding("libQt6Core"), self._holding("libtorch_cpu")
        if len(qt) != 1 or len(torch) != 1 or qt == torch:
            raise ValueError(f"{len(qt)} processes hold Qt and {len(torch)} torch: {qt}, {torch}")
        if (number := len(self.processes())) > 3:
            raise ValueError(f"{number} processes: more than window, engine, and Python's tracker")
        return f"one window process, one engine, torch in it after {seconds:.1f} s"

    def wait_until_visible(self) -> float:
        """Seconds from the start until the window is on the screen."""
        self._until(lambda: bool(self.visible("Foretoken")), "no window")
        return time.monotonic() - self._start

    def visible(self, name: str) -> list[str]:
        """The visible windows whose title begins with this name."""
        found = self._tool("search", "--onlyvisible", "--name", f"^{name}")
        return found.split()

    def run_and_export(self, report: Path, patience: float) -> None:
        """Runs the pair at hand to its end and exports, by keys alone; waits for the file."""
        deadline = time.monotonic() + patience
        self._tool("windowfocus", "--sync", self.visible("Foretoken")[0])
        self._tool("key", "ctrl+Return")
        while not self.visible("Export"):
            if time.monotonic() > deadline:
                raise ValueError("no export was offered: the run has not ended, or not begun")
            time.sleep(_ASK_SECONDS)
            self._tool("key", "ctrl+e")  # without effect while a run goes on
            time.sleep(1.0)
        self._tool("windowfocus", "--sync", self.visible("Export")[0])
        self._tool("key", "ctrl+a")
        self._tool("type", str(report))
        self._tool("key", "Return")
        self._until(report.is_file, "no report was written")

    def end(self, wanted: signal.Signals, *, code: int) -> None:
        """Sends a signal, and raises ValueError unless all is over soon, with this exit code."""
        self._process.send_signal(wanted)
        try:
            found = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            raise ValueError(f"it still runs {_END_SECONDS:g} s after {wanted.name}") from None
        if found != code:
            raise ValueError(f"it ended with {found} at {wanted.name}: {self.errors()[-500:]}")
        deadline = time.monotonic() + _END_SECONDS
        while left := self.processes():
            if time.monotonic() > deadline:
                raise ValueError(f"{len(left)} processes are left after {wanted.name}")
            time.sleep(_POLL_SECONDS)

    def errors(self) -> str:
        """What it has written to stdout and stderr."""
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")

    def _holding(self, library: str) -> list[int]:
        """The processes of the program that have loaded a library."""
        return [pid for pid in self.processes() if library in _text(Path(f"/proc/{pid}/maps"))]

    def _until(self, holds: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not holds():
            if self._process.poll() is not None:
                code = self._process.returncode
                raise ValueError(f"it ended by itself with {code}: {self.errors()}")
            if time.monotonic() > deadline:
                raise ValueError(f"{otherwise} within {_START_SECONDS:g} s: {self.errors()[-500:]}")
            time.sleep(_POLL_SECONDS)

    def _tool(self, *arguments: str) -> str:
        command = ["xdotool", *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True)
        return done.stdout


@contextlib.contextmanager
def x_server() -> Iterator[str]:
    """An X server without a screen; its display."""
    near, far = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(far), "-screen", "0", "1600x1000x24", "-nolisten", "tcp"],
        pass_fds=[far],
        stderr=subprocess.DEVNULL,
    )
    os.close(far)
    try:
        with os.fdopen(near) as number:
            yield f":{number.readline().strip()}"
    finally:
        server.terminate()
        server.wait()


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _link(pid: int) -> str:
    """The file that a process runs; nothing for one that is gone or another's."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
