"""Where a pair is chosen: those on offer, and what is said of the one that is chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from app.gui.choice import Choice
from app.gui.pair_offers import PairOffers
from app.gui.plain import label, scaled_font
from app.library.catalogue import Catalogue
from app.library.entries import PairEntry
from app.library.overview import Overview


class PairPicker:
    """The field of the pair, and two labels that stand below it."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.offers = PairOffers(catalogue)
        self._notes: tuple[str, ...] = ()
        self._reasons: Mapping[str, str] = {}
        self.field = Choice(self.offers.offers())
        self.obstacle = label(tone="caution", wrap=True)
        """Why the chosen pair cannot be used."""
        self.obstacle.hide()
        self.note = label(tone="muted", wrap=True)
        for small in (self.obstacle, self.note):
            scaled_font(small, 0.88)

    @property
    def pair(self) -> PairEntry | None:
        """The pair that is chosen; None in an empty catalogue."""
        name = self.field.get()
        return next((pair for pair in self.offers.catalogue.pairs if pair.name == name), None)

    @property
    def waits(self) -> bool:
        """Whether the pair may have to be fetched first, which choosing it does not begin."""
        return self.offers.waits(self.pair)

    def take_catalogue(self, catalogue: Catalogue) -> None:
        """Offers the pairs of another catalogue, and keeps the choice if it is still among them."""
        self.offers = self.offers.renewed(catalogue)
        self.field.offer(self.offers.offers())

    def show_standings(self, found: Overview) -> None:
        """Offers the pairs on this machine first, and says of the others what is to be fetched."""
        self.offers = PairOffers(self.offers.catalogue, found)
        self.field.offer(self.offers.offers())
        self.show_notes(self._notes)

    def mark(self, reasons: Mapping[str, str]) -> None:
        """Marks the pairs that cannot be used, by their names, and says why."""
        self._reasons = reasons
        self.field.mark(reasons)
        self.show_obstacle()

    def show_obstacle(self) -> None:
        """Says why the chosen pair cannot be used, if it cannot."""
        reason = self._reasons.get(self.field.get(), "")
        self.obstacle.setText(f"Cannot be used: {reason}")
        self.obstacle.setVisible(bool(reason))

    def show_notes(self, notes: Iterable[str]) -> None:
        """Says what there is to know of the chosen pair, with what loading has found out."""
        self._notes = tuple(notes)
        pair = self.pair
        if pair is None:
            self.note.setText("The catalogue offers no pair.")
            return
        told = (pair.note, self.offers.note(pair), *self._notes)
        self.note.setText("\n".join(filter(None, told)))
