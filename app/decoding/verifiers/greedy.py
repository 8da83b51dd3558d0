"""Keep guesses while they are the target's likeliest token; the next token is the likeliest too.

The limit of the exact rule at temperature 0 (Leviathan et al. 2023, section 2.2).
"""

from __future__ import annotations

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict, row_at


class Greedy:
    """The lossless rule without draws."""

    name = "greedy"

    def verify(self, draft: Draft, rows: TargetRows, draws: Draws) -> Verdict:
        """Compares guesses with the target's choices; uses no draw."""
        guesses = draft.block.tensor()
        matches = guesses == rows.best[: len(draft)]
        accepted = matches.long().cumprod(0).sum()
        return Verdict(accepted=accepted, next=row_at(rows.best, accepted))
