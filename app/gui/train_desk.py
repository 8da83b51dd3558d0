"""Between the page of trainings and the engine: starts them, shows them, offers what they made."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.gui.adopting import Adopted, adopt
from app.gui.background import Background
from app.gui.engine_link import EngineLink
from app.gui.train_page import TrainPage
from app.library.catalogue import Catalogue
from app.library.own_catalogue import offer_head
from app.library.training_folder import Found, look_at
from app.run.events import Progress
from app.run.problems import Problem
from app.run.teaching import Teach

TRAINING = (
    "While it trains nothing can be run: the models of runs have made room for it. Closing the "
    "window stops it; what was done is kept, and can be gone on with."
)
RUNNING = "A run goes on; a training can start once it has ended."


class TrainDesk(QObject):
    """What is done with trainings; whatever reads or writes files is done in threads."""

    changed = Signal()
    """What can be done now may be something else."""
    ended = Signal()
    """A training is over, at its end or by a stop, and the engine holds no models."""
    adopted = Signal(object, str)
    """Another catalogue holds, and this pair of it is to be used."""

    def __init__(
        self, link: EngineLink, page: TrainPage, background: Background, catalogue: Catalogue
    ) -> None:
        super().__init__()
        self._link, self._page, self._background = link, page, background
        self._catalogue = catalogue
        self._trained: Teach | None = None
        """What is being taught."""
        self._looked: tuple[Teach, Found] | None = None
        """What the folder of the form was found to hold."""
        self._looking = self._stale = self._adopting = False
        self._shown = 0
        page.form.edited.connect(self.look)
        page.start.clicked.connect(self.start)
        page.stop.clicked.connect(self.stop)
        page.progress.cancelled.connect(self.stop)
        page.tiles.use.clicked.connect(self.use)

    def start(self) -> None:
        """Starts the training of the form or goes on with it, or shows what is wrong with it."""
        try:
            wanted = self._page.form.wanted()
        except Problem as problem:
            self._failed(problem)
            return
        if self._link.busy and self._link.job != "prepare":
            return
        self._page.notice.hide()
        self._link.teach(wanted)
        self._trained = wanted
        self._show_curve()
        self.changed.emit()
        self._page.take_keyboard()

    def stop(self) -> None:
        """Ends a training; what was done is kept."""
        if self._link.job == "teach":
            self._link.stop()
            self.changed.emit()

    def look(self) -> None:
        """Looks what the folder of the form holds; one look at a time, and the last one counts."""
        if self._looking:
            self._stale = True
            return
        try:
            wanted = self._page.form.wanted()
        except Problem:
            self._looked = None
            self._page.form.show_standing("")
            self.changed.emit()
            return
        self._looking, self._stale = True, False
        catalogue = self._catalogue
        self._background.start(
            lambda: look_at(catalogue, wanted),
            lambda found: self._seen(wanted, found),
            lambda problem: self._not_seen(wanted, problem),
        )

    def use(self) -> None:
        """Offers the head in the person's own catalogue, and has its pair chosen."""
        if self._looked is None or self._looked[1].head is None or self._adopting:
            return
        wanted, head = self._looked[0], self._looked[1].head

        def offer(file: Path, catalogue: Catalogue) -> str:
            return offer_head(file, catalogue, wanted.target, head)

        self._adopting = True
        self.changed.emit()
        self._background.start(lambda: adopt(offer), self._adopt, self._failed)

    def take_catalogue(self, catalogue: Catalogue) -> None:
        """Offers the targets of another catalogue."""
        self._catalogue = catalogue
        self._page.form.take_catalogue(catalogue)

    def refresh(self) -> None:
        """Shows how the training stands, and allows what can be done now."""
        link, page = self._link, self._page
        teaching = link.job == "teach"
        if self._trained is not None and not teaching:
            self._end(self._trained)
        begins = Progress("starting the engine" if link.phase == "starting" else "starting")
        page.progress.show_progress((link.progress or begins) if teaching else None)
        if len(link.curve) != self._shown:
            self._show_curve()
        runs = link.waits or link.job in ("run", "audit")
        found = self._looked[1] if self._looked else None
        page.form.set_open(not teaching)
        page.start.setText(self._words(found, teaching=teaching))
        had_keyboard = page.window().focusWidget() is page.stop
        page.start.setEnabled(not teaching and not runs)
        page.stop.setEnabled(teaching and not link.stopping)
        if had_keyboard and not teaching:
            page.take_keyboard()
        page.note.setText(TRAINING if teaching else RUNNING if runs else "")
        page.note.setVisible(bool(page.note.text()))
        usable = found is not None and found.head is not None and not found.different
        page.tiles.use.setVisible(usable and not teaching)
        page.tiles.use.setEnabled(not runs and not self._adopting)

    def _words(self, found: Found | None, *, teaching: bool) -> str:
        if teaching:
            return "Stopping…" if self._link.stopping else "Training…"
        resumes = found is not None and found.begun and not found.different
        return "Resume training" if resumes else "Start training"

    def _end(self, wanted: Teach) -> None:
        """Says what came of a training that is over."""
        self._trained = None
        link, page = self._link, self._page
        if link.taught is not None:
            page.tiles.show_taught(link.taught)
        failed = link.trouble is not None and link.trouble.job == "teach"
        if link.taught is None and not failed:
            page.notice.show_news(
                f"Stopped. What was done is kept in {wanted.out}; Resume goes on."
            )
        self.look()
        if not failed and link.phase == "ready":
            self.ended.emit()

    def _show_curve(self) -> None:
        curve = self._link.curve
        self._shown = len(curve)
        self._page.chart.show_curve(curve)
        self._page.tiles.show_points(curve)

    def _seen(self, wanted: Teach, found: Found) -> None:
        self._looking = False
        if self._stale:
            self.look()
            return
        self._looked = (wanted, found)
        form = self._page.form
        if found.different:
            what = "; ".join(found.different)
            form.show_standing(
                f"The folder holds another training: {what}. Choose another folder.", "caution"
            )
        elif found.begun:
            form.show_standing(
                "The folder holds this training: Resume goes on with it, for as long as its "
                "minutes are not used up."
            )
        else:
            form.show_standing("")
        self._tell_trained(wanted, found)
        self.changed.emit()

    def _tell_trained(self, wanted: Teach, found: Found) -> None:
        """Says how the head in the folder was trained, unless it is the one that is shown."""
        tiles, link = self._page.tiles, self._link
        taught = link.taught
        if found.head is not None and taught is not None and str(found.head) == taught.head:
            tiles.show_taught(taught)
        elif link.job != "teach" and (found.trained or not link.curve):
            tiles.show_trained("" if found.different else found.trained)

    def _not_seen(self, wanted: Teach, problem: Problem) -> None:
        self._looking = False
        if self._stale:
            self.look()
            return
        self._looked = (wanted, Found(begun=False))
        self._page.form.show_standing(str(problem), "trouble")
        self.changed.emit()

    def _adopt(self, found: Adopted) -> None:
        self._adopting = False
        self.adopted.emit(found.catalogue, found.pair)
        self.changed.emit()

    def _failed(self, problem: Problem) -> None:
        self._adopting = False
        self._page.notice.show_trouble(problem.message, problem.remedy)
        self.changed.emit()
