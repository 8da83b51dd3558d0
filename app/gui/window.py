"""The main window: top bar, page and actions; it pulls from the engine, and lets nothing push."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QCloseEvent, QGuiApplication
from PySide6.QtWidgets import QMainWindow, QVBoxLayout, QWidget

from app.engine.protocol import Message, TokenCount
from app.gui.actions import make_actions
from app.gui.engine_link import EngineLink
from app.gui.playground import Playground
from app.gui.report_exchange import ReportExchange
from app.gui.slow_clock import Part, SlowClock
from app.gui.theme import Theme
from app.gui.top_bar import TopBar
from app.library.catalogue import Catalogue
from app.run.events import (
    FirstToken,
    LaneStarted,
    Progress,
    PromptRead,
    RoundCommitted,
    RunEnded,
    RunStarted,
)
from app.run.preparation import Prepared
from app.run.problems import Problem
from app.run.record import RunRecord
from app.run.settings import RunSettings

FRAME_MS = 33
"""How often the lanes take in what has come."""

NUMBERS_S = 0.25
"""How often numbers are renewed while they change."""

CHARTS_S = 0.6
"""How often charts are drawn while they change: painting them is what a window costs most."""

COUNT_MS = 250
"""How long typing pauses before its tokens are counted."""

_PASSING = (RoundCommitted, FirstToken, LaneStarted, PromptRead, Progress)
"""Messages that can wait for the slow clock; all others show at once."""


class MainWindow(QMainWindow):
    """Everything on screen. It owns the frame clock and nothing else that ticks."""

    def __init__(self, link: EngineLink, catalogue: Catalogue, theme: Theme) -> None:
        super().__init__()
        self.setWindowTitle("Foretoken")
        self.setMinimumSize(960, 520)
        self.resize(1440, 900)
        self._link, self._theme = link, theme
        self._record: RunRecord | None = None
        self._private: set[str] = set()
        self._trouble_shown: object = None
        self._question = 0
        self._closed = False
        self.page = Playground(catalogue, theme.colours)
        self.action = make_actions(self)
        self.bar = TopBar(self.action)
        self._reports = ReportExchange(self, self.page.notice, self._opened)
        self._make_clocks()
        self._lay_out()
        self._connect()
        for fault in catalogue.faults[:1]:
            self.page.notice.show_trouble(str(fault))
        self._refresh_state()

    @property
    def record(self) -> RunRecord | None:
        """The record that is shown: the newest run, or a report that was opened."""
        return self._record

    def begin(self) -> None:
        """Starts the engine and the clock; called once the window is up."""
        self.focus_prompt()
        self._frame_clock.start(FRAME_MS)
        self._prepare()

    def frame(self) -> None:
        """The fast clock: takes in what has come, and renews what is due."""
        for message in self._link.pull():
            self._take(message)
        self._reports.deliver()
        self.page.advance(self._record)
        if self._link.phase == "starting":
            self._slow_clock.touch()
        self._slow_clock.tick()

    def renew(self) -> None:
        """Renews all that the slow clock renews, now."""
        self._slow_clock.renew_all()

    def run(self) -> None:
        """Runs the settings of the form."""
        self._start(self.page.settings())

    def run_again(self) -> None:
        """Runs the settings of the record that is shown."""
        if self._record is not None:
            self.page.fill(self._record.settings)
            self._start(self._record.settings)

    def stop(self) -> None:
        """Ends the job at hand."""
        self._link.stop()
        self._refresh_state()

    def export(self) -> None:
        """Writes the record that is shown where the person wants it."""
        record = self._record
        if record is not None and record.outcome != "running":
            self._reports.export(record, private=record.run in self._private)

    def open_report(self) -> None:
        """Shows the report that the person chooses."""
        if not self._link.busy:
            self._reports.open()

    def copy_text(self) -> None:
        """Copies the text of the lane that has the keyboard, else of the speculative one."""
        lanes = self.page.lanes
        lane = next((lane for lane in lanes if lane.text.hasFocus()), lanes[0])
        QGuiApplication.clipboard().setText(lane.text.record_text())

    def set_speculation(self, wanted: bool) -> None:
        """Turns speculation on or off."""
        self.page.form.speculation.setChecked(wanted)

    def set_thrown(self, shown: bool) -> None:
        """Shows or hides guesses that were thrown away."""
        self.page.set_thrown(shown)

    def set_seams(self, shown: bool) -> None:
        """Shows or hides the seams between loops."""
        self.page.set_seams(shown)

    def set_charts(self, shown: bool) -> None:
        """Shows or hides the charts."""
        self.page.charts.setVisible(shown)

    def focus_prompt(self) -> None:
        """Gives the keyboard to the prompt."""
        self.page.prompt.prompt.setFocus()

    def follow_system(self) -> None:
        """Takes the colours of the system."""
        self._theme.force(None)

    def go_dark(self) -> None:
        """Stays dark."""
        self._theme.force(Qt.ColorScheme.Dark)

    def go_light(self) -> None:
        """Stays light."""
        self._theme.force(Qt.ColorScheme.Light)

    def restart_engine(self) -> None:
        """Ends the engine process and makes the pair ready in a new one."""
        self._link.restart()
        self._prepare()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Hides at once, then ends clocks, threads and the engine process."""
        self.shut_down()
        super().closeEvent(event)

    def shut_down(self) -> None:
        """Leaves no clock, thread or process; calling it twice does no harm."""
        if self._closed:
            return
        self._closed = True
        self.hide()
        self.stop_clocks()
        self._link.close()
        self._reports.close()

    def stop_clocks(self) -> None:
        """Takes nothing in any more, unless `frame` is called."""
        self._frame_clock.stop()
        self._count_clock.stop()

    def _make_clocks(self) -> None:
        self._frame_clock = QTimer(self)
        self._frame_clock.timeout.connect(self.frame)
        self._count_clock = QTimer(self)
        self._count_clock.setSingleShot(True)
        self._count_clock.timeout.connect(self._ask_count)
        page = self.page
        self._slow_clock = SlowClock(
            (
                Part(self._refresh_state, NUMBERS_S),
                Part(lambda: page.verdict.show_record(self._record), NUMBERS_S),
                Part(lambda: page.show_counts(self._record), NUMBERS_S),
                Part(lambda: page.charts.show_record(self._record), CHARTS_S),
            )
        )

    def _take(self, message: Message) -> None:
        """Minds what a message means for the page beyond the record."""
        if isinstance(message, RunStarted):
            self._record = self._link.record
        elif isinstance(message, Prepared):
            self.page.form.suggest(message.target.suggested_sampling)
            self.page.form.show_notes(message.notes)
            self._ask_count()
        elif isinstance(message, TokenCount) and message.question == self._question:
            self.page.prompt.show_count(message.tokens)
        elif isinstance(message, RunEnded) and not message.message and self._wants_other_models():
            self._prepare()
        if isinstance(message, _PASSING):
            self._slow_clock.touch()
        else:
            self._slow_clock.hasten()

    def _refresh_state(self) -> None:
        """Shows how the engine stands, and allows what can be done now."""
        link, page = self._link, self.page
        self.bar.state.setText(link.words())
        page.progress.show_progress(link.progress)
        running = "Running…" if link.job == "run" else page.run_words()
        page.run_button.setText("Runs when ready" if link.waits else running)
        ended = self._record is not None and self._record.outcome != "running"
        can = {
            "run": not link.waits and link.job != "run",
            "stop": link.busy and not link.stopping,
            "run_again": ended and not link.busy,
            "export": ended,
            "open": not link.busy,
            "copy_text": self._record is not None,
        }
        for name, possible in can.items():
            self.action[name].setEnabled(possible)
        page.run_button.setEnabled(can["run"])
        page.stop_button.setEnabled(can["stop"])
        self._show_trouble()

    def _show_trouble(self) -> None:
        """Shows each trouble of the engine once, and takes it away when it is overtaken."""
        trouble = self._link.trouble
        if trouble is self._trouble_shown:
            return
        self._trouble_shown = trouble
        if trouble:
            self.page.notice.show_trouble(trouble.message, trouble.remedy)
        else:
            self.page.notice.hide()

    def _start(self, settings: RunSettings) -> None:
        """Runs settings, or shows what is wrong with them."""
        try:
            run = self._link.run(settings)
        except Problem as problem:
            self.page.notice.show_trouble(problem.message, problem.remedy)
            return
        if self.page.prompt.private.isChecked():
            self._private.add(run)
        self._refresh_state()

    def _prepare(self) -> None:
        """Makes the chosen pair ready."""
        pair = self.page.form.pair
        if pair is not None:
            self._link.prepare(pair.name, self.page.form.precision, None)
            self._refresh_state()

    def _wants_other_models(self) -> bool:
        """Whether the form names another pair than the one that was made ready last."""
        pair = self.page.form.pair
        return pair is not None and self._link.pair not in (None, pair.name)

    def _ask_count(self) -> None:
        """Asks how many tokens the prompt is."""
        prompt = self.page.prompt
        self._question = self._link.count(
            prompt.prompt.text(), system=prompt.system_text, raw=prompt.raw.isChecked()
        )

    def _prompt_changed(self) -> None:
        self.page.prompt.show_count(None)
        self._count_clock.start(COUNT_MS)

    def _opened(self, record: RunRecord) -> None:
        if not self._link.busy:
            self._record = record
            self.page.fill(record.settings)
            self._slow_clock.hasten()

    def _recolour(self) -> None:
        self.page.set_colours(self._theme.colours)

    def _connect(self) -> None:
        page = self.page
        self._theme.changed.connect(self._recolour)
        page.run_button.clicked.connect(self.run)
        page.stop_button.clicked.connect(self.stop)
        page.progress.cancelled.connect(self.stop)
        page.form.pair_changed.connect(self._prepare)
        page.prompt.changed.connect(self._prompt_changed)
        page.form.speculation.toggled.connect(self.action["speculation"].setChecked)
        self.action["speculation"].setChecked(page.form.speculation.isChecked())
        self.action["charts"].setChecked(True)

    def _lay_out(self) -> None:
        whole = QWidget()
        column = QVBoxLayout(whole)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.bar)
        column.addWidget(self.page, 1)
        self.setCentralWidget(whole)
