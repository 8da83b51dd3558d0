"""Set-ups that leave for other programs, and those of vLLM that come into the form."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.elsewhere.offered import setup_offered
from app.elsewhere.programs import PROGRAMS, recipe
from app.elsewhere.setup import setup_of
from app.elsewhere.vllm_pair import in_vllm_words
from app.gui import dialogs
from app.gui.elsewhere_dialog import ElsewhereDialog
from app.gui.playground import Playground
from app.gui.running import Running
from app.library.catalogue import Catalogue
from app.run.problems import Problem


class ElsewhereDesk:
    """Knows which set-up is meant: that of the run that is shown, else that of the form."""

    def __init__(
        self, parent: QWidget, page: Playground, running: Running, catalogue: Catalogue
    ) -> None:
        self._parent, self._page, self._running = parent, page, running
        self._catalogue = catalogue
        self.dialog = ElsewhereDialog(parent)

    def take_catalogue(self, catalogue: Catalogue) -> None:
        """Takes on another catalogue."""
        self._catalogue = catalogue

    def show(self) -> None:
        """Shows the set-up for other programs."""
        record = self._running.record
        try:
            setup = (
                setup_of(record)
                if record is not None
                else setup_offered(self._page.settings(), self._catalogue)
            )
        except Problem as problem:
            self._page.notice.show_trouble(problem.message, problem.remedy)
            return
        about = "The run that is shown" if record is not None else "The settings of the form"
        found = [recipe(name, setup) for name in PROGRAMS]
        self.dialog.show_recipes(f"{about}, for other programs.", found)

    def take_config(self) -> None:
        """Fills the form as a speculative config of vLLM says; what has no effect is told."""
        text = dialogs.ask_config(self._parent)
        if text is None:
            return
        try:
            settings, notes = in_vllm_words(
                self._page.settings(), text, self._catalogue, asked=None
            )
        except Problem as problem:
            self._page.notice.show_trouble(problem.message, problem.remedy)
            return
        self._page.fill(settings)
        self._page.notice.show_news(" ".join(("The form says the same now.", *notes)))
