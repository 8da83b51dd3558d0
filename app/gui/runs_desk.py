"""What is done with kept runs: found, opened, compared, written to, taken out and in, deleted."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from app.gui import dialogs
from app.gui.kept_runs import KeptRuns
from app.gui.runs_page import RunsPage
from app.history import Entry, History, Imported
from app.run.problems import Problem
from app.run.record import RunRecord

MOST_SHOWN = 500
"""Runs that the list shows at once."""

Found = tuple[list[Entry], int, tuple[str, ...]]
"""The runs that a search shows, how many it found, and all tags in use."""


class RunsDesk:
    """Between the page of runs and the history; the history's work is done in threads."""

    def __init__(self, parent: QWidget, kept: KeptRuns) -> None:
        self._parent, self._kept = parent, kept
        self._searching = self._stale = False
        self._told = ""

    def attend(
        self,
        page: RunsPage,
        *,
        opened: Callable[[RunRecord], None],
        again: Callable[[RunRecord], None],
        changed: Callable[[], None],
    ) -> None:
        """Serves a page: `opened` and `again` get records, `changed` says that the choice has."""
        self._page, self._opened, self._again, self._changed = page, opened, again, changed
        page.asked.connect(self.search)
        page.table.activated.connect(self.open)
        page.table.chosen.connect(changed)
        page.side.tagged.connect(self._tag)
        page.side.noted.connect(self._note)

    def possible(self, *, shown: bool, busy: bool) -> dict[str, bool]:
        """Which of the actions on runs can be done now."""
        chosen = len(self._page.table.runs) if shown else 0
        return {
            "open_run": chosen == 1 and not busy,
            "compare_runs": chosen > 1,
            "export_runs": shown,
            "import_runs": shown,
            "delete_runs": chosen > 0,
        }

    def search(self) -> None:
        """Looks for what the page asks for; one search at a time, and the last one counts."""
        if self._searching:
            self._stale = True
            return
        self._searching, self._stale = True, False
        text, tag = self._page.search.text(), self._page.tag.get()
        tags = (tag,) if tag else ()
        self._kept.ask(lambda history: _found(history, text, tags), self._show, self._failed)

    def open(self, _index: object = None) -> None:
        """Opens the run that is chosen."""
        self._fetch(self._opened)

    def run_again(self) -> None:
        """Runs the settings of the run that is chosen."""
        self._fetch(self._again)

    def compare(self) -> None:
        """Shows the runs that are chosen side by side."""
        runs = self._page.table.runs
        if len(runs) > 1:
            self._kept.ask(
                lambda history: history.compare(runs), self._page.show_comparison, self._failed
            )

    def export(self) -> None:
        """Writes the runs that are chosen, or all if none is, to a file."""
        chosen = self._page.table.runs or None
        path = dialogs.ask_archive_path(self._parent)
        if path is not None:
            self._kept.ask(
                lambda history: history.export(chosen, path, overwrite=True),
                lambda _none: self._page.notice.show_news(f"Written: {path}"),
                self._failed,
            )

    def import_(self) -> None:
        """Takes in the runs of a file."""
        path = dialogs.ask_import_path(self._parent)
        if path is not None:
            self._kept.ask(lambda history: history.import_(path), self._imported, self._failed)

    def delete(self) -> None:
        """Deletes the runs that are chosen, once a person has confirmed it."""
        runs = self._page.table.runs
        if runs and dialogs.confirm_delete(self._parent, len(runs)):
            self._page.side.forget()
            self._change(lambda history: history.delete(runs))

    def _fetch(self, then: Callable[[RunRecord], None]) -> None:
        """Hands on the whole record of the one run that is chosen."""
        runs = self._page.table.runs
        if len(runs) == 1:
            self._kept.ask(lambda history: history.get(runs[0]), then, self._failed)

    def _tag(self, run: str, tags: list[str]) -> None:
        self._change(lambda history: _set_tags(history, run, tags))

    def _note(self, run: str, text: str) -> None:
        self._change(lambda history: history.note(run, text))

    def _change(self, work: Callable[[History], object]) -> None:
        """Changes what is kept, and shows the list anew."""
        self._kept.ask(work, lambda _done: self.search(), self._failed_change)

    def _show(self, found: Found) -> None:
        entries, number, tags = found
        self._searching = False
        self._page.show_entries(entries, of=number, tags=tags)
        self._tell_trouble()
        self._changed()
        if self._stale:
            self.search()

    def _imported(self, done: Imported) -> None:
        known = f"; {done.known} were known and stay as they are" if done.known else ""
        self._page.notice.show_news(f"Taken in: {done.added}{known}.")
        self.search()

    def _tell_trouble(self) -> None:
        """Says once what a person should know of the file's state."""
        if self._kept.trouble != self._told:
            self._told = self._kept.trouble
            self._page.notice.show_trouble(self._told)

    def _failed(self, problem: Problem) -> None:
        self._searching = False
        self._page.notice.show_trouble(problem.message, problem.remedy)

    def _failed_change(self, problem: Problem) -> None:
        """Says what could not be kept, and shows again what is."""
        self._page.side.forget()
        self._failed(problem)
        self.search()


def _found(history: History, text: str, tags: tuple[str, ...]) -> Found:
    entries = history.search(text, tags, limit=MOST_SHOWN)
    return entries, history.count(text, tags), history.known_tags()


def _set_tags(history: History, run: str, wanted: list[str]) -> None:
    """Gives a run these tags and no others."""
    for tag in set(history.entry(run).tags) - set(wanted):
        history.untag(run, tag)
    for tag in wanted:
        history.tag(run, tag)
