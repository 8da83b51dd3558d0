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


@dataclass(frozen=True, slots=True)
class Fixed:
    """The same draft length in every round."""

    length: int
    reason: DraftLimit = "draft length"

    def choose(self, round_: int) -> tuple[int, DraftLimit]:
        """The length, whatever the round."""
        return self.length, self.reason
