"""A model that becomes the target or the draft of the Playground, and whether it can."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app import files
from app.gui.adopting import Adopted, adopt
from app.gui.background import Background
from app.gui.models_page import ModelsPage
from app.library.catalogue import Catalogue
from app.library.entries import ModelEntry, PairEntry
from app.library.inventory import Listed
from app.library.own_catalogue import offer_pair
from app.library.pair_entry import Role
from app.library.together import Together, together
from app.run.problems import Problem


class ModelsPairing(QObject):
    """Compares the chosen model with the Playground's target, and makes pairs."""

    changed = Signal()
    """What can be done now may be something else."""
    adopted = Signal(object, str)
    """Another catalogue holds, and this pair of it is to be used."""

    def __init__(
        self,
        page: ModelsPage,
        background: Background,
        catalogue: Catalogue,
        chosen: Callable[[], PairEntry | None],
    ) -> None:
        """`chosen`: the pair of the Playground."""
        super().__init__(page)
        self._page, self._background, self._chosen = page, background, chosen
        self._catalogue = catalogue
        self._judging = self._stale = False
        self._verdict: Together | None = None
        """Of the chosen model as a draft for the target; None if none is known."""
        self._adopting = False

    @property
    def target(self) -> ModelEntry | None:
        """The target of the Playground's pair."""
        pair = self._chosen()
        models = {model.name: model for model in self._catalogue.models}
        return models.get(pair.target) if pair else None

    def take_catalogue(self, catalogue: Catalogue) -> None:
        """Pairs models of another catalogue from now on."""
        self._catalogue = catalogue

    def judge(self) -> None:
        """Compares the chosen model with the target; one at a time, and the last one counts."""
        self._verdict = None
        row, target = self._page.table.row, self.target
        guesser = row.entry if row and row.standing != "faulty" else None
        if row is None or guesser is None or target is None:
            self._page.side.show_verdict("", None)
            return
        role = _role(row)
        self._page.side.show_verdict(target.title, None)
        if self._judging:
            self._stale = True
            return
        self._judging, self._stale = True, False
        self._background.start(
            lambda: together(target, guesser, role=role),
            lambda found: self._judged(row, target, found),
            lambda problem: self._judged(row, target, _cannot(problem)),
        )

    def possible(self, row: Listed | None) -> dict[str, bool]:
        """What can be done with a row."""
        usable = row is not None and row.entry is not None and row.standing != "faulty"
        usable = usable and not self._adopting
        fits = self._verdict is not None and self._verdict.verdict != "cannot"
        return {
            "use_target": usable and row is not None and not row.is_head,
            "use_draft": usable and fits,
        }

    def use_target(self) -> None:
        """Makes the chosen model the target: with the pair that it has, or with one that copies."""
        row = self._page.table.row
        if row is not None and row.entry is not None and self.possible(row)["use_target"]:
            self._use(row.entry, None, None)

    def use_draft(self) -> None:
        """Makes the chosen model, or head, the one that guesses for the Playground's target."""
        row, target = self._page.table.row, self.target
        if row is not None and target is not None and self.possible(row)["use_draft"]:
            self._use(target, row.entry, _role(row))

    def _use(self, target: ModelEntry, guesser: ModelEntry | None, role: Role | None) -> None:
        def offer(file: Path, catalogue: Catalogue) -> str:
            return offer_pair(file, catalogue, target, guesser, role=role)

        self._adopting = True
        self._page.notice.hide()
        self.changed.emit()
        self._background.start(lambda: adopt(offer), self._adopted, self._failed)

    def _adopted(self, found: Adopted) -> None:
        self._adopting = False
        self.adopted.emit(found.catalogue, found.pair)
        title = found.catalogue.pair(found.pair).title
        added = f" It was added to {files.user_catalogue()}." if found.added else ""
        self._page.notice.show_news(f"The Playground (Ctrl+1) has {title} now.{added}")
        self.changed.emit()

    def _judged(self, row: Listed, target: ModelEntry, found: Together) -> None:
        self._judging = False
        if self._stale:
            self.judge()
        elif row is self._page.table.row:
            self._verdict = found
            self._page.side.show_verdict(target.title, found)
            self.changed.emit()

    def _failed(self, problem: Problem) -> None:
        self._adopting = False
        self._page.notice.show_trouble(problem.message, problem.remedy)
        self.changed.emit()


def _role(row: Listed) -> Role:
    return "head" if row.is_head else "draft"


def _cannot(problem: Problem) -> Together:
    return Together("cannot", problem.message, problem.remedy)
