"""What of the pairs is on this machine, and which cannot be used, as the picker tells it."""

from __future__ import annotations

from app.gui.background import Background
from app.gui.form import Form
from app.library.catalogue import Catalogue
from app.library.overview import Overview, overview
from app.library.together import Together, obstacles
from app.run.problems import Problem


class PairStandings:
    """Looks at the models of all pairs in a thread, one look at a time, and tells the form."""

    def __init__(self, form: Form, background: Background, catalogue: Catalogue) -> None:
        self._form, self._background, self._catalogue = form, background, catalogue
        self._looking = self._stale = False

    def take_catalogue(self, catalogue: Catalogue) -> None:
        """Looks at the pairs of another catalogue."""
        self._catalogue = catalogue
        self.look()

    def look(self) -> None:
        """Looks at the pairs as they are by now; again, if it was asked for meanwhile."""
        if self._looking:
            self._stale = True
            return
        self._looking, self._stale = True, False
        catalogue = self._catalogue

        def look() -> tuple[Overview, dict[str, Together]]:
            standings = overview(catalogue)
            return standings, obstacles(catalogue, standings)

        self._background.start(look, self._tell, self._give_up)

    def _tell(self, found: tuple[Overview, dict[str, Together]]) -> None:
        self._looking = False
        standings, refused = found
        self._form.show_standings(standings)
        self._form.mark_pairs(
            {name: f"{one.reason}\n{one.remedy}".strip() for name, one in refused.items()}
        )
        if self._stale:
            self.look()

    def _give_up(self, _problem: Problem) -> None:
        """Leaves the offers as they are: a run will tell what is wrong."""
        self._looking = False
