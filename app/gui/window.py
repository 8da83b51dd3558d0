"""The main window: top bar, pages and actions; it pulls from the engine, and lets nothing push."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QCloseEvent, QGuiApplication
from PySide6.QtWidgets import QMainWindow

from app import files
from app.engine.protocol import EngineEnded, MemoryFree, Message, TokenCount
from app.gui.actions import explain, make_actions
from app.gui.background import Background
from app.gui.changed_since import changed_since
from app.gui.dropping import Dropping
from app.gui.elsewhere_desk import ElsewhereDesk
from app.gui.engine_link import EngineLink
from app.gui.engine_troubles import EngineTroubles
from app.gui.engine_words import released_words, state_words
from app.gui.frame_clock import FrameClock
from app.gui.kept_runs import KeptRuns
from app.gui.models_desk import ModelsDesk
from app.gui.models_fit import ModelsFit
from app.gui.models_page import ModelsPage
from app.gui.pages import Pages
from app.gui.pair_standings import PairStandings
from app.gui.picture import picture_of
from app.gui.plain import tip
from app.gui.playground import Playground
from app.gui.prompt_count import PromptCount
from app.gui.report_exchange import ReportExchange
from app.gui.running import Running
from app.gui.runs_desk import RunsDesk
from app.gui.runs_page import RunsPage
from app.gui.slow_clock import Part, SlowClock
from app.gui.texts_desk import TextsDesk
from app.gui.theme import Theme
from app.gui.top_bar import TopBar
from app.gui.train_desk import TRAINING, TrainDesk
from app.gui.train_page import TrainPage
from app.gui.updates import Updates
from app.library.catalogue import Catalogue
from app.run.auditing import Audited
from app.run.events import (
    FirstToken,
    LaneStarted,
    Progress,
    PromptRead,
    RoundCommitted,
    RunEnded,
    RunStarted,
)
from app.run.preparation import EngineReady, PrecisionsRefused, Prepared, Released
from app.run.record import RunRecord

NUMBERS_S = 0.3
"""How often numbers are renewed while they change."""

CHARTS_S = 0.8
"""How often charts are drawn while they change."""

CLOSING_S = 2.0
"""How long what is being written may hold up the end."""

_DOING: dict[str, str] = {"run": "Running…", "teach": "Training…"}
"""What the run button says while the engine is at something long."""

_SCHEME_ACTIONS = {
    None: "scheme_system",
    Qt.ColorScheme.Dark: "scheme_dark",
    Qt.ColorScheme.Light: "scheme_light",
}
"""What is ticked for each scheme that may be stayed with."""

_PASSING = (RoundCommitted, FirstToken, LaneStarted, PromptRead, Progress)
"""Messages that can wait for the slow clock; all others show at once."""


class MainWindow(QMainWindow):
    """Everything on screen, moved by one frame clock."""

    def __init__(
        self, link: EngineLink, catalogue: Catalogue, theme: Theme, *, history: Path | None = None
    ) -> None:
        """Without a file for the history no run is kept."""
        super().__init__()
        self.setWindowTitle("Foretoken")
        self.setMinimumSize(960, 520)
        self.resize(1440, 900)
        self._link, self.theme = link, theme
        self._closed = False
        self.background = Background()
        self.page = Playground(catalogue, self.background, theme.colours)
        self.count = PromptCount(self.page.prompt, link, self)
        self.kept = KeptRuns(history, self.background)
        self.running = Running(link, self.page, self.kept)
        self.elsewhere = ElsewhereDesk(self, self.page, self.running, catalogue)
        self.standings = PairStandings(self.page.form, self.background, catalogue)
        self.desk = RunsDesk(self, self.kept)
        self.train = TrainPage(catalogue, theme.colours, files.data_folder() / "trained")
        self.training = TrainDesk(link, self.train, self.background, catalogue)
        self.updates = Updates(files.window_choices(), self.page.notice, self.background)
        self.action = make_actions(self)
        self.bar = TopBar(self.action)
        self.runs = RunsPage(self.action, theme.colours)
        self.models = ModelsPage(self.action, theme.colours)
        self.stock = ModelsDesk(
            self.models, self.background, catalogue, lambda: self.page.form.pair
        )
        self.fit = ModelsFit(self.models, self.background, theme.colours)
        self.pages = Pages(
            self.bar, self.page, runs=self.runs, train=self.train, models=self.models
        )
        self.setCentralWidget(self.pages)
        notice, opened = self.page.notice, self.running.open
        self._reports = ReportExchange(self, notice, self.background, opened=opened)
        self._troubles = EngineTroubles(link, playground=notice, train=self.train.notice)
        self.texts = TextsDesk(self, notice, self.background, files.kept_texts_file())
        self._make_clocks()
        self._connect()
        for fault in catalogue.faults[:1]:
            self.page.notice.show_trouble(str(fault))
        self._refresh_state()

    @property
    def record(self) -> RunRecord | None:
        """The record that is shown: the newest run, or one that was opened."""
        return self.running.record

    def begin(self) -> None:
        """Starts the engine and the clock; called once the window is up."""
        self.pages.focus_prompt()
        self.start_clocks()
        self.running.prepare()
        self.standings.look()
        self.updates.look()

    def frame(self) -> None:
        """The fast clock: takes in what has come, and renews what is due."""
        for message in self._link.pull():
            self._take(message)
        self.background.deliver()
        earlier = self.running.shown.earlier
        self.page.advance(self.record, earlier.text if earlier else "")
        if self._link.phase == "starting" or self.stock.busy:
            self._slow_clock.touch()
        self._slow_clock.tick()

    def renew(self) -> None:
        """Renews all that the slow clock renews, now."""
        self._slow_clock.renew_all()

    def run(self) -> None:
        """Runs the settings of the form, unless a number lies outside its limits."""
        self.pages.show_playground()
        if self.page.form.settle():
            self.running.start(self.page.settings())

    def run_again(self) -> None:
        """Runs the settings of the record that is shown, or of the run that is chosen."""
        if self.pages.shows(self.runs):
            self.desk.run_again()
        elif self.record is not None:
            self.running.again(self.record)

    def stop(self) -> None:
        """Ends the job at hand."""
        self._link.stop()
        self._refresh_state()

    def export(self) -> None:
        """Writes the record that is shown where the person wants it."""
        record = self.running.shown.to_leave()
        if record is not None:
            self._reports.export(record)

    def open_report(self) -> None:
        """Shows the report that the person chooses."""
        if not self._link.busy:
            self._reports.open()

    def copy_text(self) -> None:
        """Copies the text of the lane that has the keyboard, else of the speculative one."""
        lanes = self.page.lanes
        lane = next((lane for lane in lanes if lane.text.hasFocus()), lanes[0])
        QGuiApplication.clipboard().setText(lane.text.record_text())

    def copy_picture(self) -> None:
        """Copies the verdict of the run that is shown as a picture that stands alone."""
        if self.record is not None:
            self.renew()
            made = picture_of(self.page.verdict, self.record, self.theme.colours)
            QGuiApplication.clipboard().setImage(made)
            self.page.notice.show_news("The verdict is copied as a picture.")

    def restart_engine(self) -> None:
        """Ends the engine process and makes the pair ready in a new one."""
        self._link.restart()
        self.running.prepare()

    def changeEvent(self, event: QEvent) -> None:
        """Other programs may have taken memory, or let go of some, while theirs was in front."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self._link.ask_memory()

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
        self.runs.side.flush()
        self.stock.close()
        self._link.close()
        self.running.keep(self._link.record)
        if self.background.wait(CLOSING_S):
            self.kept.close()

    def start_clocks(self) -> None:
        """Takes in what comes, from now on."""
        self._frame_clock.start()

    def stop_clocks(self) -> None:
        """Takes nothing in any more, unless `frame` is called."""
        self._frame_clock.stop()
        self.count.stop()

    def _make_clocks(self) -> None:
        self._frame_clock = FrameClock(self.frame, self)
        self._slow_clock = SlowClock(
            (
                Part(self._refresh_state, NUMBERS_S),
                Part(self._show_numbers, NUMBERS_S),
                Part(self._show_charts, CHARTS_S),
            )
        )

    def _show_numbers(self) -> None:
        """Shows every number as of the same moment: they are compared with each other."""
        self.page.verdict.show_record(self.record)
        self.page.show_counts(self.record)
        self.page.charts.show_figures(self.record)
        self._show_origin()

    def _show_charts(self) -> None:
        """Draws the charts, and brings the numbers to the moment that they show."""
        self.page.charts.show_record(self.record)
        self._show_numbers()

    def _show_origin(self) -> None:
        """Says by the verdict what it is of, if the form asks for something else by now."""
        record = self.record
        asked = self.running.shown.asked(record) if record else None
        words = changed_since(asked, self.page.settings()) if asked else ""
        self.page.verdict.show_origin(words)

    def _take(self, message: Message) -> None:
        """Minds what a message means for the page beyond the record."""
        if isinstance(message, EngineReady | MemoryFree):
            self.page.take_devices(self._link.memory)
            self.fit.take_devices(self._link.memory)
        if isinstance(message, EngineReady | Prepared):
            self.page.renew_memory()
        if isinstance(message, RunStarted):
            self.running.show_record(self._link.record)
        elif isinstance(message, EngineReady):
            self.page.form.offer_devices(message.memory)
        elif isinstance(message, Released):
            self.page.notice.show_news(released_words(message))
        elif isinstance(message, Prepared):
            self.page.form.suggest(message.target.suggested_sampling)
            self.page.form.show_notes(message.notes)
            self.standings.look()
            self.count.ask()
        elif isinstance(message, PrecisionsRefused):
            self.page.form.refuse_precisions(message.reasons)
            self.page.take_refused(message.reasons)
            self.fit.take_refused(message.reasons)
        elif isinstance(message, Audited):
            self.page.notice.show_audit(message)
            self.running.prepare_other()
        elif isinstance(message, TokenCount):
            self.count.take(message)
        elif isinstance(message, RunEnded | EngineEnded):
            self.running.keep(self._link.record)
            if isinstance(message, RunEnded) and not message.message:
                self.running.prepare_other()
        if isinstance(message, _PASSING):
            self._slow_clock.touch()
        else:
            self._slow_clock.hasten()

    def _refresh_state(self) -> None:
        """Shows how the engine stands, and allows what can be done now."""
        link, page = self._link, self.page
        self.training.refresh()
        self.stock.refresh()
        self.bar.state.setText(state_words(link))
        page.progress.show_progress(None if link.job == "teach" else link.progress)
        doing = _DOING.get(link.job, page.run_words())
        page.run_button.setText("Runs when ready" if link.waits else doing)
        page.run_button.setToolTip(tip(TRAINING) if link.job == "teach" else "")
        self._allow()
        page.run_button.setEnabled(self.action["run"].isEnabled())
        page.stop_button.setEnabled(self.action["stop"].isEnabled())
        page.continue_button.setVisible(self.action["continue"].isEnabled())
        self._troubles.show()

    def _allow(self) -> None:
        """Enables the actions that can be done now."""
        link, on_runs = self._link, self.pages.shows(self.runs)
        on_playground = self.pages.shows(self.page)
        on_train = self.pages.shows(self.train)
        pair, shown = self.page.form.pair, self.running.shown
        on_kept = self.desk.possible(shown=on_runs, busy=link.busy)
        again = on_kept["open_run"] if on_runs else shown.ended and not link.busy
        can = {
            "stop": link.busy and not link.stopping and (link.job != "teach" or on_train),
            "forget_texts": not link.busy,
            "run_again": again,
            "export": shown.ended,
            "open": not link.busy,
            "copy_text": self.record is not None,
            "copy_picture": self.record is not None and on_playground,
            "vllm_config": on_playground,
            "use_elsewhere": self.record is not None or pair is not None,
            **dict.fromkeys(("thrown", "seams", "charts"), on_playground),
            **self.running.possible(),
            **on_kept,
            **self.stock.possible(shown=self.pages.shows(self.models)),
        }
        for name, possible in can.items():
            self.action[name].setEnabled(possible)
        explain(self.action["remove_model"], self.stock.obstacle)

    def _turned(self) -> None:
        """A page is shown: what it lists is listed as it is by now."""
        if self.pages.shows(self.runs):
            self.desk.search()
        elif self.pages.shows(self.train):
            self.training.look()
        elif self.pages.shows(self.models):
            self.stock.open()
        self._link.ask_memory()
        self._refresh_state()

    def _has_been_kept(self) -> None:
        if self.pages.shows(self.runs):
            self.desk.search()

    def _has_trained(self) -> None:
        """Makes the pair ready again whose models made room for a training."""
        if not self.pages.shows(self.train):
            self.page.notice.show_news("The training is over: see the Train page (Ctrl+3).")
        self.running.prepare()

    def _take_catalogue(self, catalogue: Catalogue) -> None:
        """Takes on another catalogue, wherever there is one."""
        self.page.take_catalogue(catalogue)
        self.elsewhere.take_catalogue(catalogue)
        self.training.take_catalogue(catalogue)
        self.stock.take_catalogue(catalogue)
        self.standings.take_catalogue(catalogue)

    def _pair_up(self, catalogue: Catalogue, pair: str) -> None:
        """Takes on another catalogue, and chooses a pair of it."""
        self._take_catalogue(catalogue)
        self.page.form.choose_pair(pair)

    def _adopt(self, catalogue: Catalogue, pair: str) -> None:
        """Chooses a pair with a head that was trained, and shows it."""
        self._pair_up(catalogue, pair)
        self.pages.show_playground()
        title = catalogue.pair(pair).title
        self.page.notice.show_news(f"{title} is chosen; it stands in {files.user_catalogue()}.")

    def _recolour(self) -> None:
        self.page.set_colours(self.theme.colours)
        self.runs.comparison.set_colours(self.theme.colours)
        self.train.chart.set_colours(self.theme.colours)
        self.models.table.set_colours(self.theme.colours)
        self.fit.bar.set_colours(self.theme.colours)

    def _tick_scheme(self) -> None:
        """Ticks the scheme that was chosen, in the menu."""
        self.action[_SCHEME_ACTIONS[self.theme.forced]].setChecked(True)

    def _connect(self) -> None:
        page = self.page
        running = self.running
        self.desk.attend(self.runs, opened=running.open, again=running.again, changed=self._allow)
        running.called.connect(self.pages.show_playground)
        running.changed.connect(self._refresh_state)
        running.opened.connect(self._slow_clock.hasten)
        running.kept.connect(self._has_been_kept)
        self.training.changed.connect(self._refresh_state)
        self.training.ended.connect(self._has_trained)
        self.training.adopted.connect(self._adopt)
        self._connect_models()
        self.pages.turned.connect(self._turned)
        self.theme.changed.connect(self._recolour)
        self.theme.chosen.connect(self._tick_scheme)
        self._tick_scheme()
        page.run_button.clicked.connect(self.run)
        page.stop_button.clicked.connect(self.stop)
        page.continue_button.clicked.connect(running.go_on)
        page.continue_button.setToolTip(self.action["continue"].toolTip())
        page.progress.cancelled.connect(self.stop)
        page.form.pair_changed.connect(running.prepare)
        page.form.changed.connect(self._link.ask_memory)
        page.form.changed.connect(self._show_origin)
        page.prompt.changed.connect(self._show_origin)
        page.form.speculation.toggled.connect(self.action["speculation"].setChecked)
        self.action["speculation"].setChecked(page.form.speculation.isChecked())
        self.action["charts"].setChecked(True)
        self.action["updates"].setChecked(self.updates.wanted)

    def _connect_models(self) -> None:
        stock = self.stock
        stock.changed.connect(self._refresh_state)
        stock.catalogue_read.connect(self._take_catalogue)
        stock.keeping.moved.connect(self.standings.look)
        stock.pairing.adopted.connect(self._pair_up)
        self.page.form.pair_changed.connect(stock.pairing.judge)
        Dropping(self).dropped.connect(self._take_dropped)

    def _take_dropped(self, paths: list[Path]) -> None:
        """Shows what was dropped on the page of models."""
        self.pages.show_models()
        self.stock.take(paths)
