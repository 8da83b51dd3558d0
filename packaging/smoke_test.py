"""Tries the frozen program as a person would have it; one line a check.

    python packaging/smoke_test.py [--dist DIR]

--dist names the folder that holds the program, `dist/foretoken` if it is not given. Where the
embedded model came along, the embedded pair is run too, without a network. Standard library only.
Exit code 0 if all went well.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from smoke_window import Window, x_server

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 600.0
"""Seconds after which a command counts as hung."""

_NOISE = re.compile(r"warning|traceback|\bqt\b|qt\.|\bq[A-Z]\w+:|torch", re.IGNORECASE)
"""What libraries write to stderr, where only Foretoken's own words belong."""

_SHORT_RUN = ["--pair", "embedded", "--precision", "fp32", "--max-new-tokens", "24"]
_TEXT = "Repeat after me: one two three, one two three, one two three."


class Failed(Exception):
    """A check that did not hold, and why."""


class Smoke:
    """The frozen program in an environment of its own, and what has failed so far."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        suffix = ".exe" if os.name == "nt" else ""
        self.folder = folder.resolve()
        self.program = self.folder / f"foretoken{suffix}"
        self.scratch = scratch
        self.home = scratch / "Zoë's home 模型"
        self.elsewhere = scratch / "elsewhere"
        self.failed = 0
        self.has_embedded = any(self.folder.rglob("resources/wheels/*/*.gguf"))
        self.elsewhere.mkdir()
        self.home.mkdir()
        self.elsewhere.chmod(0o555)

    @property
    def environment(self) -> dict[str, str]:
        """The surroundings of someone who has no Python, and a home folder of an unusual name."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "VIRTUAL_ENV", "QT_", "XDG_", "HF_"))
        }
        # No proxy answers there: whatever asks the network would fail.
        nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
        return {**kept, **nowhere, "FORETOKEN_HOME": str(self.home), "HOME": str(self.home)}

    def check(self, name: str, look: Callable[[], str]) -> None:
        """Prints the line of one check."""
        start = time.monotonic()
        try:
            told = f"ok: {look()}"
        except (Failed, OSError, ValueError, subprocess.SubprocessError) as fault:
            told = f"FAILED: {fault}"
            self.failed += 1
        print(f"{name}: {told} [{time.monotonic() - start:.1f} s]", flush=True)

    def call(self, *arguments: str) -> str:
        """The stdout of a command that has to end well and to keep libraries quiet."""
        done = subprocess.run(
            [str(self.program), *arguments],
            cwd=self.elsewhere,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=PATIENCE,
        )
        if done.returncode != 0:
            told = done.stdout[-1500:] + done.stderr[-1500:]
            raise Failed(f"exit code {done.returncode}: {told}")
        expect_quiet(done.stderr)
        return done.stdout


def expect_quiet(errors: str) -> None:
    """Fails for a line on stderr that is a library's."""
    noise = [line for line in errors.splitlines() if _NOISE.search(line)]
    if noise:
        raise Failed(f"stderr holds {noise[0]!r}")


# ---- The checks ----------------------------------------------------------------------------


def version(smoke: Smoke) -> str:
    """The version is that of the project."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = smoke.call("--version").strip()
    if told != f"{project['name']} {project['version']}":
        raise Failed(f"it says {told!r}")
    return told


def selftest(smoke: Smoke) -> str:
    """The program's own test, whose lines are shown."""
    told = smoke.call("selftest", *(["--embedded"] if smoke.has_embedded else [])).rstrip()
    return told.replace("\n", "\n    ")


def two_without_streams(smoke: Smoke) -> str:
    """The program's own test twice at once, without stdin, stdout and stderr."""
    if os.name == "nt":
        return "not tried on Windows"
    command = ["sh", "-c", 'exec "$0" selftest <&- >&- 2>&-', str(smoke.program)]
    both = [subprocess.Popen(command, cwd=smoke.elsewhere, env=smoke.environment) for _ in range(2)]
    codes = [process.wait(PATIENCE) for process in both]
    if codes != [0, 0]:
        raise Failed(f"exit codes {codes}")
    return "exit code 0 twice"


def models(smoke: Smoke) -> str:
    """The catalogue that ships is read."""
    told = smoke.call("models")
    if "embedded" not in told:
        raise Failed(f"no embedded pair in {told!r}")
    return f"{len(told.splitlines())} lines"


def schema(smoke: Smoke) -> str:
    """The layout of the record, which is read from source files, tells of every field."""
    told = json.loads(smoke.call("report", "--schema"))
    fields = [field for part in told["$defs"].values() for field in part["properties"].values()]
    if not all("description" in field for field in fields):
        raise Failed("a field is not told of")
    return f"{len(fields)} fields"


def embedded_run(smoke: Smoke) -> str:
    """A run of the embedded pair, one JSON object on stdout, and a report that reads back."""
    report = smoke.scratch / "report é.json"
    told = smoke.call("run", *_SHORT_RUN, "--prompt", _TEXT, "--json", "--report", str(report))
    json.loads(told)
    outcome = json.loads(report.read_text(encoding="utf-8"))["outcome"]
    if outcome != "finished":
        raise Failed(f"the report says {outcome}")
    smoke.call("report", str(report), "--to", str(report.with_suffix(".md")))
    return f"{report.stat().st_size:,} bytes of report, outcome {outcome}"


def window_offscreen(smoke: Smoke) -> str:
    """A window without a screen, closed by Ctrl+C."""
    environment = {**smoke.environment, "QT_QPA_PLATFORM": "offscreen"}
    with Window(smoke.program, environment, smoke.elsewhere) as window:
        told = window.wait_for_engine()
        window.end(signal.SIGINT, code=0)
        expect_quiet(window.errors())
    return told


def window_terminated(smoke: Smoke) -> str:
    """A window that the system ends; its engine has to follow."""
    environment = {**smoke.environment, "QT_QPA_PLATFORM": "offscreen"}
    with Window(smoke.program, environment, smoke.elsewhere) as window:
        window.wait_for_engine()
        window.end(signal.SIGTERM, code=-signal.SIGTERM)
        expect_quiet(window.errors())
    return "nothing is left"


def window_on_screen(smoke: Smoke) -> str:
    """A window on an X server of its own: how soon it is there, and that there is only one."""
    with x_server() as display:
        environment = {**smoke.environment, "DISPLAY": display}
        environment.pop("WAYLAND_DISPLAY", None)
        with Window(smoke.program, environment, smoke.elsewhere) as window:
            seconds = window.wait_until_visible()
            told = window.wait_for_engine()
            again = subprocess.run(
                [str(smoke.program)], cwd=smoke.elsewhere, env=environment, timeout=PATIENCE
            )
            if again.returncode != 0:
                raise Failed(f"a second start ended with exit code {again.returncode}")
            if (number := len(window.visible("Foretoken"))) != 1:
                raise Failed(f"{number} windows after a second start")
            if smoke.has_embedded:
                told += f"; {run_and_export(window, smoke.scratch / 'window.json')}"
            window.end(signal.SIGINT, code=0)
            expect_quiet(window.errors())
    return f"one window after {seconds:.2f} s; {told}"


def run_and_export(window: Window, report: Path) -> str:
    """By keyboard: runs the default pair to its end, and exports a report."""
    window.run_and_export(report, PATIENCE)
    record = json.loads(report.read_text(encoding="utf-8"))
    if record["outcome"] != "finished" or not record["lanes"]:
        raise Failed(f"the window's report says {record['outcome']}")
    return f"the pair {record['settings']['pair']} ran by keyboard and was exported"


def main() -> int:
    """Builds if need be, and checks; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    built = ROOT / "dist" / "foretoken"
    parser.add_argument("--dist", type=Path, default=built, help="the program's folder")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="foretoken smoke ") as scratch:
        smoke = Smoke(asked.dist, Path(scratch))
        checks = [version, models, schema, selftest, two_without_streams]
        checks += [embedded_run] if smoke.has_embedded else []
        if sys.platform == "linux":
            checks += [window_offscreen, window_terminated]
            checks += [window_on_screen] if shutil.which("Xvfb") and shutil.which("xdotool") else []
        for one in checks:
            smoke.check(one.__name__.replace("_", " "), partial(one, smoke))
        with contextlib.suppress(OSError):
            smoke.elsewhere.chmod(0o755)
    print(f"{smoke.failed} checks failed." if smoke.failed else "All is well.")
    return 1 if smoke.failed else 0


if __name__ == "__main__":
    sys.exit(main())
