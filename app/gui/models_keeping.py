"""What is fetched to this machine and removed from it, as the page of models asks."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import QObject, Signal

from app.gui import dialogs
from app.gui.background import Background
from app.gui.cancellable import Cancellable
from app.gui.models_page import ModelsPage
from app.gui.models_words import size_words
from app.library.catalogue import Catalogue
from app.library.entries import HubSource, ModelEntry
from app.library.inventory import Listed
from app.library.kept import Kept, kept_of, never_removed, remove
from app.library.sources import fetch
from app.run.events import Progress
from app.run.problems import Problem


class _Weighed(NamedTuple):
    """What is kept of a model, and its bytes."""

    kept: Kept
    size: int


class ModelsKeeping(QObject):
    """One model is fetched at a time; what is removed was made or fetched by Foretoken."""

    changed = Signal()
    """What can be done now may be something else."""
    moved = Signal()
    """There is more or less on this machine than before."""

    def __init__(self, page: ModelsPage, background: Background, catalogue: Catalogue) -> None:
        super().__init__(page)
        self._page, self._background, self._catalogue = page, background, catalogue
        self._fetching = Cancellable(background)
        self._removing = False
        page.fetching.cancelled.connect(self.cancel)

    @property
    def busy(self) -> bool:
        """Whether a model is being fetched."""
        return self._fetching.running

    def take_catalogue(self, catalogue: Catalogue) -> None:
        """Fetches and removes models of another catalogue from now on."""
        self._catalogue = catalogue

    def possible(self, row: Listed | None) -> dict[str, bool]:
        """What can be done with a row."""
        offered = row is not None and row.offered
        missing = row is not None and row.standing in ("to be fetched", "to be converted")
        return {
            "fetch_model": offered and missing and not self._fetching.running,
            "remove_model": (
                offered
                and not self.obstacle(row)
                and not self._removing
                and not self._fetching.running
            ),
        }

    def obstacle(self, row: Listed | None) -> str:
        """Why nothing of a row can ever be removed; empty where something may be."""
        return never_removed(row.entry) if row is not None and row.entry is not None else ""

    def fetch(self) -> None:
        """Fetches the model that is chosen, and converts it if need be."""
        row = self._page.table.row
        if row is None or row.entry is None or not self.possible(row)["fetch_model"]:
            return
        entry = row.entry
        self._page.notice.hide()
        self._fetching.start(
            Progress(f"fetching {entry.title}"),
            lambda report, pause: fetch(entry, report, pause=pause),
            then=lambda _folder: self._fetched(entry),
            otherwise=lambda problem: self._not_fetched(entry, problem),
            cancelled=lambda: self._stopped(entry),
        )
        self.changed.emit()

    def cancel(self) -> None:
        """Stops fetching."""
        self._fetching.cancel()
        self.changed.emit()

    def remove(self) -> None:
        """Removes what is kept of the model that is chosen, once a person has confirmed it."""
        row = self._page.table.row
        if row is None or row.entry is None or not self.possible(row)["remove_model"]:
            return
        entry, catalogue = row.entry, self._catalogue

        def weigh() -> _Weighed:
            kept = kept_of(catalogue, entry.name)
            return _Weighed(kept, kept.size)

        self._removing = True
        self._background.start(weigh, lambda found: self._ask(entry, found), self._failed)
        self.changed.emit()

    def refresh(self) -> None:
        """Shows how far the fetching has come."""
        strip = self._page.fetching
        strip.show_progress(self._fetching.progress)
        strip.cancel.setEnabled(not self._fetching.stopping)

    def _fetched(self, entry: ModelEntry) -> None:
        self._page.notice.show_news(f"{entry.title} is ready.")
        self._moved()

    def _not_fetched(self, entry: ModelEntry, problem: Problem) -> None:
        said = problem.message
        known = said if entry.title in said else f"{entry.title} was not fetched. {said}"
        self._page.notice.show_trouble(known, problem.remedy)
        self._moved()

    def _stopped(self, entry: ModelEntry) -> None:
        onward = (
            "What has come is kept: Fetch goes on from there."
            if isinstance(entry.source, HubSource)
            else "Fetch begins anew."
        )
        self._page.notice.show_news(f"Stopped fetching {entry.title}. {onward}")
        self._moved()

    def _moved(self) -> None:
        self.moved.emit()
        self.changed.emit()

    def _ask(self, entry: ModelEntry, found: _Weighed) -> None:
        """Asks, saying what and how much; or says why there is nothing to remove."""
        kept, left = found.kept, "\n".join(found.kept.left)
        self._removing = False
        if not kept.paths:
            said = f"Foretoken keeps nothing of {entry.title} on this disk."
            self._page.notice.show_news("\n".join(filter(None, (said, left))))
        elif dialogs.confirm_remove(
            self._page,
            entry.title,
            size_words(found.size),
            kept.paths,
            "\n".join(filter(None, (kept.caution, left))),
        ):
            self._removing = True
            told = f"Removed {size_words(found.size)} of {entry.title}."
            self._background.start(
                lambda: remove(kept), lambda _none: self._removed(told), self._failed
            )
        self.changed.emit()

    def _removed(self, told: str) -> None:
        self._removing = False
        self._page.notice.show_news(told)
        self._moved()

    def _failed(self, problem: Problem) -> None:
        self._removing = False
        self._page.notice.show_trouble(problem.message, problem.remedy)
        self._moved()
