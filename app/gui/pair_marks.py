"""Which pairs the picker marks as ones that cannot be used."""

from __future__ import annotations

from app.gui.background import Background
from app.gui.form import Form
from app.library.catalogue import Catalogue
from app.library.together import Together, obstacles
from app.run.problems import Problem


class PairMarks:
    """Checks the pairs in a thread, one look at a time, and marks them in the form."""

    def __init__(self, form: Form, background: Background, catalogue: Catalogue) -> None:
        self._form, self._background, self._catalogue = form, background, catalogue
        self._looking = self._stale = False

    def take_catalogue(self, catalogue: Catalogue) -> None:
        """Marks the pairs of another catalogue."""
        self._catalogue = catalogue
        self.look()

    def look(self) -> None:
        """Checks the pairs as they are by now; the last look counts."""
        if self._looking:
            self._stale = True
            return
        self._looking, self._stale = True, False
        catalogue = self._catalogue
        self._background.start(lambda: obstacles(catalogue), self._mark, self._give_up)

    def _mark(self, found: dict[str, Together]) -> None:
        self._looking = False
        if self._stale:
            self.look()
            return
        self._form.mark_pairs(
            {name: f"{one.reason}\n{one.remedy}".strip() for name, one in found.items()}
        )

    def _give_up(self, _problem: Problem) -> None:
        """Leaves the marks as they are: a run will tell what is wrong."""
        self._looking = False
