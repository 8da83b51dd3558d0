"""What an open window costs: decode speed beside that of the command line. Run by hand:

    python tests/gui/bench_window.py [PAIRS [TOKENS]]

The command line and the window run the same settings in turn, each in an engine of its own; both
lanes count. Needs the embedded pair, and a machine that does nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.extend(map(str, Path(__file__).resolve().parents[:3]))

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from app import files
from app.engine.client import EngineClient
from app.gui.engine_link import EngineLink
from app.gui.theme import Theme
from app.gui.window import MainWindow
from app.library.catalogue import load_catalogue
from app.reports.json_report import read_record
from app.run.metrics import decode_speed
from app.run.record import RunRecord
from app.run.settings import RunSettings

PROMPT = "Count from one to one hundred in words."


def settings(tokens: int) -> RunSettings:
    """A run of the embedded pair, one whole lane after the other."""
    return RunSettings(
        "embedded", PROMPT, max_new_tokens=tokens, ignore_end_of_text=True, precision="fp32"
    )


def typed(tokens: int) -> RunRecord:
    """The record of a run of the command line."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "run.json"
        wanted = ("--pair", "embedded", "--prompt", PROMPT, "--max-new-tokens", str(tokens))
        rest = ("--ignore-end-of-text", "--precision", "fp32", "--report", str(report))
        program = (sys.executable, "-m", "app", "run", *wanted, *rest)
        subprocess.run(program, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return read_record(report)


class Watched:
    """A window with an engine of its own, and what it costs to look at it."""

    def __init__(self, theme: Theme) -> None:
        self._link = EngineLink(EngineClient())
        catalogue = load_catalogue([files.shipped_catalogue()])
        self.window = MainWindow(self._link, catalogue, theme)
        self.window.show()

    def run(self, tokens: int) -> tuple[RunRecord, float]:
        """The record of a run that the window shows, and the window's share of one core."""
        self.window.running.start(settings(tokens))
        # A loop of its own: the end of the application's would close the window and its engine.
        loop, end = QEventLoop(), QTimer()
        end.timeout.connect(lambda: None if self._link.busy else loop.quit())
        end.start(50)
        before = time.process_time(), time.perf_counter()
        self.window.start_clocks()
        loop.exec()
        self.window.stop_clocks()
        end.stop()
        share = (time.process_time() - before[0]) / (time.perf_counter() - before[1])
        assert self._link.record is not None
        return self._link.record, share


def speeds(record: RunRecord) -> list[float]:
    """The decode speeds of both lanes."""
    assert record.outcome == "finished", record.message
    found = [decode_speed(record.repetitions(lane)[0]) for lane in ("speculative", "baseline")]
    return [speed for speed in found if speed]


def main() -> None:
    """Prints each pair's ratios, and their median."""
    given = [int(each) for each in sys.argv[1:3]]
    pairs, tokens = (given + [9, 128][len(given) :])[:2]
    watched = Watched(Theme(QApplication([])))
    watched.run(8)
    ratios: list[float] = []
    for place in range(pairs):
        seen: list[float] = []
        for shown in (place % 2 == 0, place % 2 == 1):
            if not shown:
                alone = speeds(typed(tokens))
                continue
            record, share = watched.run(tokens)
            seen = speeds(record)
        ratios += [with_window / without for with_window, without in zip(seen, alone, strict=True)]
        print(
            f"pair {place + 1}: {ratios[-2]:.3f} and {ratios[-1]:.3f} of the command line's speed; "
            f"the window took {100 * share:.1f} % of a core",
            flush=True,
        )
    print(f"median {median(ratios):.3f} (wanted: 0.98 or more)")
    watched.window.close()


if __name__ == "__main__":
    main()
