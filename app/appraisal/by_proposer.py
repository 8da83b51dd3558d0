"""What each proposer of a combined method came to: its loops, and what was kept of its guesses."""

from __future__ import annotations

import msgspec

from app.run.events import Round
from app.run.metrics import Counts
from app.run.record import RunRecord

PROPOSERS: dict[str, str] = {
    "ngram": "n-gram",
    "suffix": "suffix decoding, this text",
    "suffix-earlier": "suffix decoding, earlier texts",
    "draft-model": "draft model",
    "cascade": "draft model with n-grams",
    "early-exit": "early exit",
    "tli": "shared tokens (TLI)",
    "slem": "text cut anew (SLEM)",
    "head": "head",
    "head-tree": "head's tree",
    "mtp": "MTP",
}
"""The sources of guesses, in words."""

COPIES = ("ngram", "suffix", "suffix-earlier")
"""Those whose guesses cost no step of a model."""


class ProposerRow(msgspec.Struct, frozen=True):
    """One proposer; "" stands for loops in which nothing was guessed."""

    source: str
    counts: Counts
    loops: float
    """Share of the speculative lane's loops."""

    @property
    def label(self) -> str:
        """The proposer in words."""
        return PROPOSERS.get(self.source, self.source) or "no guess"


def by_proposer(record: RunRecord) -> list[ProposerRow]:
    """The speculative lane split by who guessed, the most loops first."""
    rounds = record.rounds("speculative")
    split: dict[str, list[Round]] = {}
    for one in rounds:
        split.setdefault(one.source, []).append(one)
    rows = [
        ProposerRow(source, Counts().plus(some), len(some) / len(rounds))
        for source, some in split.items()
    ]
    return sorted(rows, key=lambda row: -row.loops)
