"""The texts that suffix decoding copies from, as the menu offers to let them go."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.gui import dialogs
from app.gui.background import Background
from app.gui.strips import Notice
from app.library.kept_texts import KeptSize, KeptTexts
from app.run.problems import Problem


class TextsDesk:
    """Says how much is kept, and lets it go once a person has confirmed that."""

    def __init__(self, parent: QWidget, notice: Notice, background: Background, file: Path) -> None:
        self._parent, self._notice, self._background = parent, notice, background
        self._kept = KeptTexts(file)

    def forget(self) -> None:
        """Asks whether to let the texts go."""
        self._background.start(self._kept.sizes, self._ask, self._unreadable)

    def _ask(self, sizes: list[KeptSize]) -> None:
        if not sizes:
            self._notice.show_news("No text of an earlier run is kept for suffix decoding.")
        elif dialogs.confirm_forget(self._parent, sizes):
            self._clear()

    def _unreadable(self, problem: Problem) -> None:
        """A damaged file has nothing to lose."""
        if dialogs.confirm_forget(self._parent, []):
            self._clear()
        else:
            self._trouble(problem)

    def _clear(self) -> None:
        self._background.start(self._kept.clear, self._cleared, self._trouble)

    def _cleared(self, _nothing: None) -> None:
        self._notice.show_news("No text of an earlier run is kept for suffix decoding any more.")

    def _trouble(self, problem: Problem) -> None:
        self._notice.show_trouble(problem.message, problem.remedy)
