"""Keep guesses while they are the target's likeliest token; the next token is the likeliest too.

The limit of the exact rule at temperature 0 (Leviathan et al. 2023, section 2.2).
"""

from __future__ import annotations

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict, row_at
from app.decoding.verifiers.chances import same_as


class Greedy:
    """The lossless rule without draws."""

    name = "greedy"

    def verify(self, draft: Draft, rows: TargetRows, draws: Draws) -> Verdict:
        """Compares guesses with the target's choices; uses no draw."""
        same = same_as(rows.best, draft)
        return same.verdict(row_at(rows.best, same.row))
