"""What an open window costs the engine; prints the ratio of decode speeds. Run by hand:

    python tests/gui/bench_window.py [PAIRS [TOKENS]]

One engine runs the same settings in turn for a client that only listens, and for a window that
shows them; both lanes count. Needs the embedded pair, and a machine that does nothing else.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from statistics import median

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.extend(map(str, Path(__file__).resolve().parents[:3]))

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from app import files
from app.engine.client import EngineClient
from app.engine.protocol import Run
from app.gui.engine_link import EngineLink
from app.gui.theme import Theme
from app.gui.window import MainWindow
from app.library.catalogue import load_catalogue
from app.run.metrics import decode_speed
from app.run.record import RunRecord
from app.run.settings import RunSettings

STEP_S = 0.033


def settings(tokens: int) -> RunSettings:
    """A run of the embedded pair as the playground asks for it."""
    return RunSettings(
        "embedded",
        "Count from one to one hundred in words.",
        max_new_tokens=tokens,
        ignore_end_of_text=True,
        precision="fp32",
        order="interleaved",
        detail="full",
    )


def listened(client: EngineClient, wanted: RunSettings) -> RunRecord:
    """The record of a run that nobody looks at."""
    client.send(Run("listened", wanted))
    while client.busy:
        client.drain()
        time.sleep(STEP_S)
    assert client.record is not None
    return client.record


def watched(window: MainWindow, wanted: RunSettings) -> RunRecord:
    """The record of a run that a window shows."""
    link = window._link
    window.running.start(wanted)
    # A loop of its own: the end of the application's would close the window and its engine.
    loop, end = QEventLoop(), QTimer()
    end.timeout.connect(lambda: None if link.busy else loop.quit())
    end.start(50)
    window.start_clocks()
    loop.exec()
    window.stop_clocks()
    end.stop()
    assert link.record is not None
    return link.record


def speeds(record: RunRecord) -> list[float]:
    """The decode speeds of both lanes."""
    assert record.outcome == "finished", record.message
    found = [decode_speed(record.repetitions(lane)[0]) for lane in ("speculative", "baseline")]
    return [speed for speed in found if speed]


def main() -> None:
    """Prints each pair's ratio and their median."""
    given = [int(each) for each in sys.argv[1:3]]
    pairs, tokens = (given + [5, 128][len(given) :])[:2]
    theme = Theme(QApplication([]))
    client = EngineClient()
    catalogue = load_catalogue([files.shipped_catalogue()])
    window = MainWindow(EngineLink(client), catalogue, theme)
    window.show()
    listened(client, settings(8))
    ratios = []
    for place in range(pairs):
        runs = [
            lambda: listened(client, settings(tokens)),
            lambda: watched(window, settings(tokens)),
        ]
        found = [speeds(run()) for run in runs]
        ratios += [seen / alone for seen, alone in zip(found[1], found[0], strict=True)]
        print(
            f"pair {place + 1}: with a window at {ratios[-2]:.3f} and {ratios[-1]:.3f}", flush=True
        )
    print(f"median {median(ratios):.3f} of the speed without (wanted: 0.98 or more)")
    window.close()


if __name__ == "__main__":
    main()
