"""What a long text costs the window; prints figures. Run by hand:

    python tests/gui/bench_lane.py

Three measurements: the cost of 1 000 appends at the beginning and at the end of 20 000 tokens in
one line without spaces; how late a 50 ms heartbeat is while 2 000 tokens a second arrive; and how
much memory 300 runs after another leave behind.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.extend(map(str, Path(__file__).resolve().parents[:3]))

import psutil
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication
from scripted_engine import ScriptedClient, record_of, run_of

from app import files
from app.gui.colours import DARK
from app.gui.engine_link import EngineLink
from app.gui.lane_text import LaneText
from app.gui.theme import Theme
from app.gui.window import MainWindow
from app.library.catalogue import load_catalogue
from app.run.events import At, FirstToken, LaneStarted, Phases, Round, RoundCommitted, Token

AT = At("r", "speculative")
STATUSES = ("accepted", "corrected", "bonus", "plain")


def appends(tokens: int, *, a_frame: int = 50, a_block: int = 1000) -> list[float]:
    """Seconds that each 1 000 tokens cost, painted, in one line whose tokens differ in colour."""
    record = record_of([run_of("a")[0], LaneStarted(AT)])
    record.apply(FirstToken(AT, Token(1, "a", "first"), 0.1))
    lane = LaneText(DARK)
    lane.resize(520, 400)
    lane.show()
    costs = []
    for _ in range(tokens // a_block):
        spent = 0.0
        for _ in range(a_block // a_frame):
            _write(record, a_frame)
            began = time.perf_counter()
            lane.show_repetition(record.repetitions("speculative")[-1])
            lane.advance()
            QApplication.processEvents()
            spent += time.perf_counter() - began
        costs.append(spent)
    lane.close()
    lane.deleteLater()
    return costs


def heartbeat(
    window: MainWindow, client: ScriptedClient, *, rate: int, seconds: float
) -> list[float]:
    """Seconds by which each beat of a 50 ms timer was late while tokens arrived at a rate."""
    late: list[float] = []
    began = due = time.perf_counter()
    sent = 0

    def beat() -> None:
        nonlocal due
        now = time.perf_counter()
        late.append(max(0.0, now - due - 0.05))
        due = now

    def arrive() -> None:
        nonlocal sent
        wanted = int((time.perf_counter() - began) * rate)
        while sent < wanted:
            events = _round_events(sent)
            sent += 2 * len(events[0].round.committed)
            client.play(*events)

    client.play(*run_of("a")[:1], LaneStarted(AT), LaneStarted(At("r", "baseline")))
    timers = [_timer(beat, 50), _timer(arrive, 10)]
    # A loop of its own: once the application's has been quit, no other goes on in this process.
    loop = QEventLoop()
    QTimer.singleShot(int(seconds * 1000), loop.quit)
    window.begin()
    loop.exec()
    for timer in timers:
        timer.stop()
    window.stop_clocks()
    return late


def growth(window: MainWindow, client: ScriptedClient, *, runs: int) -> list[int]:
    """Bytes that the process holds after each run."""
    held = []
    events = run_of()
    for _ in range(runs):
        client.play(*events)
        window.frame()
        window.renew()
        QApplication.processEvents()
        held.append(psutil.Process().memory_info().rss)
    return held


def open_window(theme: Theme) -> tuple[MainWindow, ScriptedClient]:
    """A window on a scripted engine that is ready."""
    client = ScriptedClient()
    window = MainWindow(EngineLink(client), load_catalogue([files.shipped_catalogue()]), theme)
    window.show()
    client.ready()
    window.frame()
    return window, client


def main() -> None:
    """Prints the three measurements."""
    theme = Theme(QApplication([]))
    costs = appends(20_000)
    print(f"1 000 appends: first {costs[0]:.3f} s, last {costs[-1]:.3f} s,", end=" ")
    print(f"ratio {costs[-1] / costs[0]:.2f} (wanted: below 2)")
    window, client = open_window(theme)
    late = heartbeat(window, client, rate=2000, seconds=10)
    worst = quantiles(late, n=100)[98]
    print(f"heartbeat: median {median(late) * 1000:.0f} ms late,", end=" ")
    print(f"99 % below {worst * 1000:.0f} ms (wanted: below 200), {len(late)} beats")
    held = growth(window, client, runs=300)
    print(f"memory: {held[49] / 1e6:.0f} MB after 50 runs,", end=" ")
    print(f"{held[-1] / 1e6:.0f} MB after {len(held)} (wanted: less than 20 MB more)")
    window.close()


def _write(record, tokens: int) -> None:
    """Commits so many tokens in rounds of five."""
    rounds = record.repetitions("speculative")[-1].rounds
    for _ in range(tokens // 5):
        committed = tuple(Token(i, "xyzzy", STATUSES[i % 4]) for i in range(5))
        round_ = Round(len(rounds), 4, "draft length", committed, (), Phases(verify=0.01))
        record.apply(RoundCommitted(AT, round_))


def _round_events(sent: int) -> list[RoundCommitted]:
    """A round of five tokens in one lane, and five of one in the other."""
    index = sent // 10
    committed = tuple(Token(i, " kite", STATUSES[i % 4]) for i in range(5))
    fast = Round(index, 4, "draft length", committed, (), Phases(verify=0.01))
    slow = [
        Round(
            5 * index + i, 0, "draft length", (Token(i, " kite", "plain"),), (), Phases(verify=0.01)
        )
        for i in range(5)
    ]
    return [RoundCommitted(AT, fast), *(RoundCommitted(At("r", "baseline"), one) for one in slow)]


def _timer(call: Callable[[], None], milliseconds: int) -> QTimer:
    timer = QTimer()
    timer.timeout.connect(call)
    timer.start(milliseconds)
    return timer


if __name__ == "__main__":
    main()
