"""A window on an engine without models that ends itself: how, and how many milliseconds after what.

python closing_program.py close|twice|quit|interrupt|fault MILLISECONDS start|prepare|run
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "engine"), str(HERE.parents[1])]


def main() -> int:
    from fake_bench import settings_of
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    from app import files
    from app.engine.client import EngineClient
    from app.gui import crash
    from app.gui.application import show
    from app.gui.engine_link import EngineLink
    from app.gui.theme import Theme
    from app.gui.window import MainWindow
    from app.library.catalogue import load_catalogue
    from app.run.preparation import Prepare

    how, milliseconds, during = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    application = QApplication(sys.argv[:1])
    client = EngineClient("fake_bench:FakeBench")
    catalogue = load_catalogue([files.shipped_catalogue()])
    window = MainWindow(
        EngineLink(client), catalogue, Theme(application), history=files.history_file()
    )
    pair = {"start": "here", "prepare": "staged", "run": "here"}[during]
    window.running.prepare = lambda: window._link.prepare(Prepare(pair))
    asked_at = 0.0

    def end() -> None:
        nonlocal asked_at
        asked_at = time.monotonic()
        ends[how]()

    def twice() -> None:
        window.close()
        window.close()

    def fail() -> None:
        """A bug in a slot; nobody is there to dismiss the dialog."""
        crash.crash_box = lambda *_: SimpleNamespace(exec=lambda: None)
        raise RuntimeError("a bug")

    ends = {
        "fault": fail,
        "close": window.close,
        "twice": twice,
        "quit": application.quit,
        "interrupt": lambda: os.kill(os.getpid(), signal.SIGINT),
    }

    def when_it_is_time() -> None:
        """Waits for the moment that the test wants, then for so many milliseconds."""
        link = window._link
        come = {
            "start": True,
            "prepare": link.progress is not None,
            "run": window.record is not None and bool(window.record.lanes),
        }[during]
        if during == "run" and link.phase == "ready" and not link.busy:
            window.running.start(settings_of(rounds=10_000, step=0.2))
        if come:
            watch.stop()
            QTimer.singleShot(milliseconds, end)

    watch = QTimer(window)
    watch.timeout.connect(when_it_is_time)
    watch.start(10)
    code = show(application, window)
    took = time.monotonic() - asked_at
    left = [
        thread.name for thread in threading.enumerate() if thread is not threading.main_thread()
    ]
    print(f"took {took:.2f} s, threads left: {left}", flush=True)
    return code if took < 3 and not left else 9


if __name__ == "__main__":
    sys.exit(main())
