"""Target and draft draw with the same noise at each place: a seed gives one text, whoever guesses.

Source: Daliri, Musco, Suresh 2024 (arXiv 2408.07978), section 4. The target's token at a place
depends on its law and the noise of that place alone, so guesses change the speed and nothing else.
"""

from __future__ import annotations

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict
from app.decoding.verifiers.chances import kept_while_same


class Coupled:
    """The lossless rule that also keeps the text of a seed."""

    name = "coupled"

    def verify(self, draft: Draft, rows: TargetRows, draws: Draws) -> Verdict:
        """Keeps the guesses while they are what the target draws; uses `draws.shared` only."""
        tree = draft.block.tree
        return kept_while_same(draws.shared.pick(rows.law, tree), draft, rows)
