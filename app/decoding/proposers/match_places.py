"""Of all places where a run of tokens stood, the one that an n-gram copies from.

Each takes a place in as the text grows, so that a round costs the same however long the text is.
Sources: the last place, Saxena 2023 (prompt lookup decoding); the first, vLLM and transformers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Run = tuple[int, ...]


class Places(Protocol):
    """Where runs of tokens ended."""

    def note(self, run: Run, end: int, *, follows: int) -> None:
        """Takes in that a run ended at this place of the text, and which token follows it."""
        ...

    def find(self, run: Run) -> int | None:
        """The end of the place to copy from; None for a run that was not seen."""
        ...


class LastPlaces:
    """The most recent place of each run."""

    def __init__(self) -> None:
        self._ends: dict[Run, int] = {}

    def note(self, run: Run, end: int, *, follows: int) -> None:
        """The newest place takes the place of those before."""
        self._ends[run] = end

    def find(self, run: Run) -> int | None:
        """The end of the last place."""
        return self._ends.get(run)


class FirstPlaces(LastPlaces):
    """The earliest place of each run."""

    def note(self, run: Run, end: int, *, follows: int) -> None:
        """Only the first is kept."""
        self._ends.setdefault(run, end)


class MostFrequentPlaces:
    """The most recent of the places where a run was followed by the token that follows it most.

    Of tokens that followed it equally often, the one that did so last.
    """

    def __init__(self) -> None:
        self._followed: dict[Run, dict[int, int]] = {}
        """How often each token followed each run."""
        self._best: dict[Run, tuple[int, int]] = {}
        """How often the commonest token followed each run, and where it did so last."""

    def note(self, run: Run, end: int, *, follows: int) -> None:
        """Counts what follows."""
        followed = self._followed.setdefault(run, {})
        followed[follows] = count = followed.get(follows, 0) + 1
        if count >= self._best.get(run, (0, 0))[0]:
            self._best[run] = (count, end)

    def find(self, run: Run) -> int | None:
        """The end of the last place that went on as most do."""
        return self._best[run][1] if run in self._best else None


_PLACES: dict[str, Callable[[], Places]] = {
    "last": LastPlaces,
    "first": FirstPlaces,
    "most-frequent": MostFrequentPlaces,
}


def make_places(match: str) -> Places:
    """Empty places of the kind that an option names."""
    return _PLACES[match]()
