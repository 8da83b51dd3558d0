"""The bench with the real models: runs them, and teaches heads for them."""

from __future__ import annotations

from collections.abc import Callable

from app.library.catalogue import Catalogue
from app.run.preparation import Prepare, Prepared
from app.run.problems import Cancelled, Problem, release_frames
from app.run.teaching import Taught, Teach
from app.studies.workbench import Pause, Report, Workbench
from app.training.teaching import Point, teach


class TorchBench(Workbench):
    """Runs and teaches by the catalogue as it is when a pair is to be made ready."""

    def __init__(self, read: Callable[[], Catalogue]) -> None:
        """`read` reads the catalogue."""
        super().__init__(read())
        self._read = read

    def prepare(self, wanted: Prepare, *, report: Report, pause: Pause) -> Prepared:
        """Makes a pair ready by the catalogue as it is now; what is the same stays loaded."""
        catalogue = self._read()
        if catalogue != self._catalogue:
            self._pair, self._catalogue = None, catalogue
        return super().prepare(wanted, report=report, pause=pause)

    def teach(self, wanted: Teach, *, report: Report, point: Point, pause: Pause) -> Taught:
        """Makes a head, or goes on with it; before and after, nothing is loaded.

        Raises Problem for what a person can mend, Cancelled when `pause` does.
        """
        self.release()
        try:
            return teach(self._catalogue, wanted, report=report, point=point, pause=pause)
        except (Cancelled, Problem) as stop:
            release_frames(stop)
            raise
        finally:
            self.release()
