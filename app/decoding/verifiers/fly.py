"""FLy: a rejected guess is kept after all where the target is unsure and what follows agrees.

Source: arXiv 2511.22972 and its code. The exact rule decides first (at temperature 0, the greedy
one). A guess that it rejects is kept if the entropy of the target's three likeliest tokens is high
enough, the target gives the guess a chance, and the guesses in a window behind it all pass by the
exact rule, the window lying inside the draft. Then the first guess that is still rejected ends the
draft. vLLM's window counts the guesses behind the rejected one; the paper's code counts that one
too, so that one guess fewer has to agree.
"""

from __future__ import annotations

import torch
from torch import Tensor

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict
from app.decoding.verifiers.chances import chances, strict_chances
from app.decoding.verifiers.lossy import lossy_verdict

_LIKELIEST = 3
"""Tokens whose entropy is taken; their probabilities are not renormalised."""


class Fly:
    """A lossy rule: `followers` guesses have to agree, `window` have to be left in the draft."""

    name = "fly"

    def __init__(self, *, window: int, followers: int, entropy: float) -> None:
        self._window = window
        self._followers = followers
        self._entropy = entropy

    def verify(self, draft: Draft, rows: TargetRows, draws: Draws) -> Verdict:
        """Decides by `draws.accept`; the chance told of a guess counts the window's agreement."""
        strict = strict_chances(draft, rows)
        native = draws.accept < strict
        p, _ = chances(rows.probabilities, draft)
        unsure = (self._entropies(rows) >= self._entropy) & (p > 0)
        rescued = self._deferred(unsure, native)
        chance = strict + (1.0 - strict) * self._deferred(unsure.to(strict.dtype), strict)
        return lossy_verdict(draft, rows, draws, chance=chance, kept=native | rescued, drawn=False)

    def _entropies(self, rows: TargetRows) -> Tensor:
        """-Σ p log p over each place's likeliest tokens, in nats: [drafted]."""
        laws = rows.probabilities[:-1]
        best = torch.topk(laws, min(_LIKELIEST, laws.shape[-1]), dim=-1).values
        return -torch.xlogy(best, best).sum(dim=-1)

    def _deferred(self, gates: Tensor, passes: Tensor) -> Tensor:
        """Gate times the passes of the followers, [drafted]; nothing where the window would end
        behind the draft. Of truths it makes truths, of chances a chance.
        """
        room = max(len(gates) - self._window, 0)
        found = gates[:room]
        for step in range(1, self._followers + 1):
            found = found * passes[step : step + room]
        return torch.cat([found, torch.zeros_like(gates[room:])])
