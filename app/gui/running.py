"""Between the playground and the engine: starts runs, keeps what has ended, shows records."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.gui.continuation import Earlier
from app.gui.engine_link import EngineLink
from app.gui.kept_runs import KeptRuns
from app.gui.playground import Playground
from app.gui.shown_run import ShownRun
from app.run.methods import unkept
from app.run.problems import Problem
from app.run.record import RunRecord
from app.run.settings import RunSettings


class Running(QObject):
    """What is done with the run at hand, and with the one that is shown."""

    called = Signal()
    """The playground has something to show."""
    changed = Signal()
    """What can be done now may be something else."""
    opened = Signal()
    """Another record is shown than the newest run's."""
    kept = Signal()
    """The history has one run more."""

    def __init__(self, link: EngineLink, page: Playground, history: KeptRuns) -> None:
        super().__init__()
        self._link, self._page, self._history = link, page, history
        self.shown = ShownRun()
        self._kept_last = ""

    @property
    def record(self) -> RunRecord | None:
        """The record that is shown: the newest run, or one that was opened."""
        return self.shown.record

    def possible(self) -> dict[str, bool]:
        """Which of its actions can be done now."""
        link, pair = self._link, self._page.form.pair
        return {
            "run": not link.waits and link.job not in ("run", "audit", "teach"),
            "audit": not link.busy,
            "release": not link.busy and link.target is not None,
            "continue": not link.busy and self.shown.can_continue(pair.name if pair else None),
        }

    def start(self, settings: RunSettings, *, of: str = "") -> None:
        """Runs settings (those `of` an earlier run), or shows what is wrong with them."""
        self.called.emit()
        private = self._page.prompt.private.isChecked() or self.shown.is_private(of)
        try:
            run = self._link.run(unkept(settings) if private else settings)
        except Problem as problem:
            self._page.notice.show_trouble(problem.message, problem.remedy)
            return
        if private:
            self.shown.keep_private(run, settings)
        if settings.prompt.strip() or settings.continues:  # an empty one is to be written yet
            self._page.read_lanes()
        self.changed.emit()

    def again(self, record: RunRecord) -> None:
        """Runs the settings of a record."""
        settings = self.shown.asked(record)
        self._page.fill(settings)
        self.start(settings, of=record.run)

    def go_on(self) -> None:
        """Goes on where the run that is shown was cut off."""
        settings = self.shown.continuation(fresh=self._page.settings().max_new_tokens)
        if settings is not None:
            self.start(settings, of=settings.continues)

    def audit(self) -> None:
        """Audits whether the settings of the form keep the target's law."""
        self.called.emit()
        if not self._page.form.settle():
            return
        try:
            self._link.audit(self._page.settings())
        except Problem as problem:
            self._page.notice.show_trouble(problem.message, problem.remedy)
        self.changed.emit()

    def prepare(self) -> None:
        """Makes the chosen pair ready, unless it has to be fetched: that is for a run to do."""
        wanted = self._page.form.wanted
        if wanted is not None and not self._page.form.waits:
            self._link.prepare(wanted)
            self.changed.emit()

    def prepare_other(self) -> None:
        """The same, if it is another pair than the one that was made ready last."""
        pair = self._page.form.pair
        if pair is not None and self._link.pair not in (None, pair.name):
            self.prepare()

    def release(self) -> None:
        """Lets go of the models that are loaded; the next run loads what it needs."""
        self._link.release()
        self.changed.emit()

    def show_record(self, record: RunRecord | None) -> None:
        """Shows a record, and says so if it goes on from another."""
        self.shown.record = record
        self._page.notice.hide_news()
        words = self.shown.words()
        if words:
            self._page.notice.show_news(words)

    def open(self, record: RunRecord) -> None:
        """Shows a record that was read, and looks for what stands before it."""
        if self._link.busy:
            return
        self.called.emit()
        self._page.fill(record.settings)
        self.show_record(record)
        self.opened.emit()
        if self.shown.earlier is None and self._history.keeps:
            self._history.find_earlier(record, self._found_earlier, self._not_found)

    def keep(self, record: RunRecord | None) -> None:
        """Keeps a run that has ended, once, unless it is private."""
        if record is None or record.outcome == "running" or record.run == self._kept_last:
            return
        self._kept_last = record.run
        if self._history.keeps and not self.shown.is_private(record.run):
            self._history.add(record, self.kept.emit, self._not_kept)

    def _not_kept(self, problem: Problem) -> None:
        self._page.notice.show_trouble(f"The run was not kept. {problem.message}", problem.remedy)

    def _found_earlier(self, run: str, earlier: Earlier | None) -> None:
        """Shows what was written before a run that was opened."""
        if earlier is None:
            return
        self.shown.know(run, earlier)
        if self.record is not None and self.record.settings.continues == run:
            self.show_record(self.record)

    def _not_found(self, problem: Problem) -> None:
        self._page.notice.show_trouble(problem.message, problem.remedy)
