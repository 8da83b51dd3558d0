"""How many tokens a round may guess, and what said so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from app.run.events import DraftLimit


class DraftLength(Protocol):
    """Chooses the draft length of each round."""

    def choose(self, round_: int) -> tuple[int, DraftLimit]:
        """The most tokens to guess in this round, and what set that number."""
        ...

    def learn(self, drafted: int, accepted: int) -> None:
        """Takes in what the rule kept of a round's guesses."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same draft length in every round."""

    length: int
    reason: DraftLimit = "draft length"

    def choose(self, round_: int) -> tuple[int, DraftLimit]:
        """The length, whatever the round."""
        return self.length, self.reason

    def learn(self, drafted: int, accepted: int) -> None:
        """Nothing: it stays the same."""


class Heuristic:
    """Two tokens more after a draft that was kept whole, one fewer after any other; never below 1.

    Source: transformers' `num_assistant_tokens_schedule="heuristic"`; the run's draft length is the
    most. A round without a draft says nothing.
    """

    def __init__(self, *, start: int, longest: int) -> None:
        self._length = min(start, longest)
        self._longest = longest

    def choose(self, round_: int) -> tuple[int, DraftLimit]:
        """The length that the rounds so far have led to."""
        return self._length, "draft length" if self._length == self._longest else "policy"

    def learn(self, drafted: int, accepted: int) -> None:
        """Grows or shrinks."""
        if drafted:
            longer = self._length + 2 if accepted == drafted else max(1, self._length - 1)
            self._length = min(longer, self._longest)
