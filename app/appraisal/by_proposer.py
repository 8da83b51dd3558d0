"""What each proposer of a combined method came to: its loops, and what was kept of its guesses."""

from __future__ import annotations

import msgspec

from app.run.events import Round
from app.run.metrics import Counts
from app.run.record import RunRecord

PROPOSERS: dict[str, str] = {"ngram": "n-gram", "draft-model": "draft model", "head": "head"}
"""The sources of guesses, in words."""


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
    rounds = [one for each in record.repetitions("speculative") for one in each.rounds]
    split: dict[str, list[Round]] = {}
    for one in rounds:
        split.setdefault(_source(one), []).append(one)
    rows = [_row(source, some, len(rounds)) for source, some in split.items()]
    return sorted(rows, key=lambda row: -row.loops)


def _row(source: str, rounds: list[Round], of: int) -> ProposerRow:
    return ProposerRow(source, Counts().plus(rounds), len(rounds) / of)


def _source(round_: Round) -> str:
    """Who guessed in this round: all guesses of a draft have one proposer."""
    guesses = (token.source for token in (*round_.committed, *round_.thrown) if token.source)
    return next(guesses, "")
