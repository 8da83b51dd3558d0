"""The question whether a newer version is out: asked at the start, and only where it is wanted."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSettings

from app import __version__
from app.gui.background import Background
from app.gui.strips import Notice
from app.library.updates import Release, newer_release
from app.run.problems import Problem

_KEY = "look for a newer version"


class Updates:
    """Remembers whether the person wants to be told, and tells."""

    def __init__(self, choices: Path, notice: Notice, background: Background) -> None:
        """`choices` is the file in which the window's choices are kept."""
        self._kept = QSettings(str(choices), QSettings.Format.IniFormat)
        self._notice, self._background = notice, background

    @property
    def wanted(self) -> bool:
        """Whether the question is asked at every start; no, unless the person has said so."""
        return self._kept.value(_KEY, False, bool) is True

    def set_wanted(self, wanted: bool) -> None:
        """Keeps the choice; who switches it on is told at once."""
        if wanted == self.wanted:
            return
        self._kept.setValue(_KEY, wanted)
        if wanted:
            self._ask(tell_all=True)

    def look(self) -> None:
        """Asks, if it is wanted; says something only if a newer version is out."""
        if self.wanted:
            self._ask(tell_all=False)

    def _ask(self, *, tell_all: bool) -> None:
        def told(release: Release | None) -> None:
            if release is not None:
                self._notice.show_news(
                    f"Foretoken {release.version} is out; this is {__version__}. It can be had "
                    f"from {release.page}"
                )
            elif tell_all:
                self._notice.show_news(f"This is the newest version, {__version__}.")

        def failed(problem: Problem) -> None:
            if tell_all:
                self._notice.show_trouble(problem.message, problem.remedy)

        self._background.start(newer_release, told, failed)
