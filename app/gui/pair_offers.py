"""The pairs as the picker offers them: the default, those on this machine, those to be fetched."""

from __future__ import annotations

from app.library.catalogue import Catalogue
from app.library.entries import HubSource, PairEntry
from app.library.overview import Overview, PairStanding, size_words


class PairOffers:
    """The pairs of a catalogue, with what is known of how they stand on this machine."""

    def __init__(self, catalogue: Catalogue, found: Overview | None = None) -> None:
        self.catalogue = catalogue
        self._found = {pair.entry.name: pair for pair in found.pairs} if found else {}

    def renewed(self, catalogue: Catalogue) -> PairOffers:
        """The pairs of another catalogue, as far as they were looked at."""
        made = PairOffers(catalogue)
        made._found = self._found
        return made

    def offers(self) -> list[tuple[str, str]]:
        """Words and name of every pair, in the order of the overview, the default first."""
        places = {name: place for place, name in enumerate(self._found)}
        default, last = self.catalogue.default, len(places)
        pairs = sorted(
            self.catalogue.pairs,
            key=lambda pair: (pair.name != default, places.get(pair.name, last)),
        )
        return [(self._words(pair), pair.name) for pair in pairs]

    def waits(self, pair: PairEntry | None) -> bool:
        """Whether a pair may have to be fetched from a hub: choosing it is not enough for that."""
        if pair is None:
            return False
        models = self.catalogue.models_of(pair.name)
        found = self._found.get(pair.name)
        far = any(isinstance(model.source, HubSource) for model in models)
        return far and (found is None or found.standing == "to be fetched")

    def note(self, pair: PairEntry | None) -> str:
        """What a run of this pair would fetch first; empty if nothing, or if it is not known."""
        found = self._found.get(pair.name) if pair else None
        if found is None or not self.waits(pair):
            return ""
        size = size_words(found.download_bytes)
        return f"Not on this machine: a run fetches it first ({size})."

    def _words(self, pair: PairEntry) -> str:
        found: PairStanding | None = self._found.get(pair.name)
        if found is None or found.standing == "ready":
            return pair.title
        return f"{pair.title} ({found.words})"
