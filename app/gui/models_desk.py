"""Between the page of models and the library: what is listed, found, dropped and checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.gui import dialogs
from app.gui.adopting import current_catalogue
from app.gui.background import Background
from app.gui.cancellable import Cancellable, Report
from app.gui.models_keeping import ModelsKeeping
from app.gui.models_page import ModelsPage
from app.gui.models_pairing import ModelsPairing
from app.library.catalogue import Catalogue
from app.library.dropped import look_into
from app.library.entries import PairEntry
from app.library.inventory import Listed, listing
from app.library.scan import Found, Scan, scan
from app.library.whole_folder import Pause
from app.run.events import Progress
from app.run.problems import Problem

_Taken = tuple[list[Found], list[Problem]]
"""What lies at the paths that a person pointed at, and what is wrong with the others."""


class ModelsDesk(QObject):
    """What is done with models; whatever reads or writes files is done in threads."""

    changed = Signal()
    """What can be done now may be something else."""
    catalogue_read = Signal(object)
    """The catalogue was read anew, and differs."""

    def __init__(
        self,
        page: ModelsPage,
        background: Background,
        catalogue: Catalogue,
        chosen: Callable[[], PairEntry | None],
    ) -> None:
        """`chosen`: the pair of the Playground."""
        super().__init__(page)
        self._page, self._background, self._catalogue = page, background, catalogue
        self._scanning, self._taking = Cancellable(background), Cancellable(background)
        self.keeping = ModelsKeeping(page, background, catalogue)
        self.pairing = ModelsPairing(page, background, catalogue, chosen)
        self._found: dict[Path, Found] = {}
        self._waiting: list[Path] = []
        """Paths that were dropped while others were looked into."""
        self._listing = self._stale = self._scanned = False
        self._wanted = ""
        """The key of the row to choose once it is listed."""
        page.looking.cancelled.connect(self.cancel)
        page.table.chosen.connect(self.pairing.judge)
        page.table.chosen.connect(self.changed)
        page.table.activated.connect(lambda _index: self.pairing.use_target())
        self.keeping.changed.connect(self.changed)
        self.keeping.moved.connect(self.look)
        self.pairing.changed.connect(self.changed)

    def open(self) -> None:
        """The page is shown: lists what there is, and looks through this machine the first time."""
        self.look()
        if not self._scanned:
            self.scan()

    def look(self) -> None:
        """Lists the models as they are by now; one look at a time, and the last one counts."""
        if self._listing:
            self._stale = True
            return
        self._listing, self._stale = True, False
        catalogue, found = self._catalogue, tuple(self._found.values())
        self._background.start(lambda: listing(catalogue, found), self._show, self._failed)

    def scan(self) -> None:
        """Looks through the usual places of this machine, unless that goes on already."""
        if self._scanning.running:
            return
        self._scanned = True
        catalogue = self._catalogue
        self._scanning.start(
            Progress("looking for models on this machine"),
            lambda report, pause: scan((), catalogue, pause=pause, report=_counted(report)),
            then=self._take_scan,
            otherwise=self._failed,
            cancelled=lambda: self._page.notice.show_news(
                "Stopped looking. What was listed before stays; Look again begins anew."
            ),
        )
        self.changed.emit()

    def scan_again(self) -> None:
        """Reads the catalogue anew, and looks through this machine again."""
        self._read_catalogue()
        self.scan()

    def take(self, paths: Sequence[Path]) -> None:
        """Looks into folders and files that a person points at, and chooses what they are."""
        self._waiting += [path for path in paths if path not in self._waiting]
        if self._taking.running or not self._waiting:
            return
        wanted, self._waiting = self._waiting, []
        catalogue = self._catalogue
        self._page.notice.hide()
        self._taking.start(
            Progress(f"looking into {wanted[0].name or wanted[0]}"),
            lambda report, pause: _looked_into(wanted, catalogue, _counted(report), pause),
            then=self._take_found,
            otherwise=self._failed,
            cancelled=lambda: self._page.notice.show_news("Stopped; nothing was added."),
        )
        self.changed.emit()

    def add_folder(self) -> None:
        """Lets a person choose a folder, and takes it."""
        folder = dialogs.ask_folder(self._page, "The folder of a model, or of several", "")
        if folder is not None:
            self.take([Path(folder)])

    def check_again(self) -> None:
        """Looks again at the model that is chosen, or at the file of the entry that is faulty."""
        row = self._page.table.row
        if row is None:
            return
        self._page.notice.hide()
        if row.path is not None and not row.offered and row.fault is None:
            self._found.pop(row.path, None)
            self.take([row.path])
        else:
            self._read_catalogue()

    def cancel(self) -> None:
        """Stops looking."""
        self._waiting.clear()
        self._taking.cancel()
        self._scanning.cancel()

    def close(self) -> None:
        """Asks all that goes on to stop, as the window closes."""
        self.cancel()
        self.keeping.cancel()

    def take_catalogue(self, catalogue: Catalogue) -> None:
        """Lists the models of another catalogue."""
        self._catalogue = catalogue
        self.keeping.take_catalogue(catalogue)
        self.pairing.take_catalogue(catalogue)
        if self._scanned:
            self.look()

    def refresh(self) -> None:
        """Shows how far things have come."""
        page = self._page
        page.looking.show_progress(self._taking.progress or self._scanning.progress)
        self.keeping.refresh()

    def possible(self, *, shown: bool) -> dict[str, bool]:
        """Which of the actions on models can be done now."""
        row = self._page.table.row if shown else None
        return {
            "add_folder": shown,
            "scan_models": shown and not self._scanning.running,
            "check_model": row is not None and not self._listing,
            **self.keeping.possible(row),
            **self.pairing.possible(row),
        }

    @property
    def obstacle(self) -> str:
        """Why nothing of the chosen model can ever be removed; empty where something may be."""
        return self.keeping.obstacle(self._page.table.row)

    @property
    def busy(self) -> bool:
        """Whether something goes on whose progress is shown."""
        return self._scanning.running or self._taking.running or self.keeping.busy

    def _read_catalogue(self) -> None:
        self._background.start(current_catalogue, self._take_read, self._failed)

    def _take_read(self, catalogue: Catalogue) -> None:
        if catalogue == self._catalogue:
            self.look()
        else:
            self.catalogue_read.emit(catalogue)

    def _take_scan(self, seen: Scan) -> None:
        own = {path: one for path, one in self._found.items() if one.place == "your folder"}
        self._found = {one.path: one for one in seen.found} | own
        there = dict.fromkeys(place.whose for place in seen.places if place.there)
        lines = [
            f"{one.whose}: {one.folder}{'' if one.there else ' (not there)'}" for one in seen.places
        ]
        trouble = f" {len(seen.troubles)} places could not be read." if seen.troubles else ""
        self._page.show_places(
            f"Looked through {', '.join(there) or 'the usual places: none is there'}.{trouble}",
            "\n".join((*lines, *seen.troubles)),
        )
        self.look()

    def _take_found(self, taken: _Taken) -> None:
        found, problems = taken
        self._found |= {one.path: one for one in found}
        if problems:
            told = "\n".join(problem.message for problem in problems)
            self._page.notice.show_trouble(told, problems[0].remedy)
        if found:
            self._wanted = str(found[0].path)
        self.look()
        self.changed.emit()
        self.take(())

    def _show(self, rows: tuple[Listed, ...]) -> None:
        self._listing = False
        if self._stale:
            self.look()
            return
        self._page.show_rows(rows)
        if self._wanted:
            there = [row for row in rows if str(row.path) == self._wanted and not row.fault]
            self._wanted = ""
            for row in there[:1]:
                self._page.choose(row.key)
                self._page.take_keyboard()
        self.changed.emit()

    def _failed(self, problem: Problem) -> None:
        self._listing = False
        self._page.notice.show_trouble(problem.message, problem.remedy)
        self.changed.emit()


def _looked_into(
    paths: Sequence[Path], catalogue: Catalogue, report: Callable[[str], None], pause: Pause
) -> _Taken:
    found: list[Found] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            found += look_into(path, catalogue, pause=pause, report=report)
        except Problem as problem:
            problems.append(problem)
    return found, problems


def _counted(report: Report) -> Callable[[str], None]:
    """Tells how many were looked into; their paths may be too long for a line."""
    number = 0

    def told(_path: str) -> None:
        nonlocal number
        number += 1
        report(Progress(f"looking for models, {number} so far"))

    return told
