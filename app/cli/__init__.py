"""The terminal front end: run, bench, train, models, report, selftest.

Exit codes: 0 done; 1 a problem, told in two sentences; 2 wrong usage; 70 a fault of the program,
its traceback in the log; 130 stopped by Ctrl+C, partial reports written.
"""

from __future__ import annotations

import sys
import traceback
from datetime import datetime

from app import files
from app.cli.commands import terminal
from app.cli.interrupt import STOPPED
from app.cli.screen import say_problem
from app.run.problems import Cancelled, Problem

PROBLEM = 1
FAULT = 70


def main(arguments: list[str]) -> int:
    """Runs one command and returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        terminal(args=arguments, prog_name="foretoken")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except Problem as problem:
        say_problem(problem.message, problem.remedy)
        return PROBLEM
    except (Cancelled, KeyboardInterrupt):
        say_problem("Stopped.", "")
        return STOPPED
    except Exception:
        say_problem(f"Something went wrong inside Foretoken; {_logged()}", "")
        return FAULT
    return 0


def _logged() -> str:
    """Writes the traceback at hand to the log, and says where it is."""
    path = files.log_folder() / "foretoken.log"
    told = traceback.format_exc()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{datetime.now().astimezone().isoformat()}\n{told}\n")
    except OSError:
        return f"the log cannot be written, so here it is:\n{told}"
    return f"details are in {path}"
