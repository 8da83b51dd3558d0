"""Draw the target's own token at every place, and keep the guesses while they are those tokens.

The rule of llama.cpp and of transformers' prompt lookup. It is exact for any guesses, whatever law
they come from; a guess is kept with the target's probability of it, which is the exact rule's own
chance for a guess that was certain, and less than that for one that was drawn.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict
from app.decoding.sampling import pick
from app.decoding.verifiers.chances import kept_while_same


class SampleMatch:
    """The lossless rule that never asks for the draft's law."""

    name = "sample-match"

    def verify(self, draft: Draft, rows: TargetRows, draws: Draws) -> Verdict:
        """Draws a token at every place; the one at the first mismatch is the next token."""
        own = pick(rows.law, torch.cat([draws.accept, draws.next])[:, None])
        verdict = kept_while_same(own, draft, rows)
        return replace(verdict, accept_probability=verdict.target_probability)
