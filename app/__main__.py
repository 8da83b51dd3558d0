"""The one way in: `python -m app` and `foretoken`. Window, command line, or a child of the engine.

Children of the engine import this module too, so that nothing heavy is imported here.
"""

import multiprocessing
import os
import sys


def _repair_streams() -> None:
    """Gives a program without a console somewhere to read from and write to."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


_repair_streams()
multiprocessing.freeze_support()

# Read when huggingface_hub and tokenizers are imported: no telemetry, and no warning about threads
# whenever a program is started from here.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


_STOPPED = 130


def main() -> int:
    """Opens the window or, given arguments, runs the command line; returns the exit code."""
    arguments = sys.argv[1:]
    if arguments:
        try:
            from app.cli import main as command_line
        except KeyboardInterrupt:
            return _STOPPED  # Ctrl+C before anything could listen to it

        return command_line(arguments)
    return _window()


def _window() -> int:
    """Opens the window, or says why none can open; Qt's own modules may not even load there."""
    from app.gui.display import obstacle

    hindrance = obstacle()
    if hindrance:
        print(hindrance, file=sys.stderr)
        return 2
    from app.gui.application import main as window

    return window()


if __name__ == "__main__":
    sys.exit(main())
