"""Target and draft draw with the same noise at each place: a seed gives one text, whoever guesses.

Source: Daliri, Musco, Suresh 2024 (arXiv 2408.07978), section 4. The target's token at a place
depends on its law and the noise of that place alone, so guesses change the speed and nothing else.
"""

from __future__ import annotations

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict, row_at
from app.decoding.verifiers.chances import chances, guesses_of


class Coupled:
    """The lossless rule that also keeps the text of a seed."""

    name = "coupled"

    def verify(self, draft: Draft, rows: TargetRows, draws: Draws) -> Verdict:
        """Keeps the guesses while they are what the target draws; uses `draws.shared` only."""
        own = draws.shared.pick(rows.law)
        matches = guesses_of(draft, own) == own[: len(draft)]
        accepted = matches.long().cumprod(0).sum()
        token = row_at(own, accepted)
        p, q = chances(rows.law, draft)
        return Verdict(
            accepted=accepted,
            next=token,
            target_probability=p,
            draft_probability=q,
            next_probability=row_at(row_at(rows.law, accepted), token),
        )
