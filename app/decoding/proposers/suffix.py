"""Guess that the text goes on as it mostly does behind its last tokens: here, or in earlier texts.

Suffix decoding, Oliaro et al. 2024 (arXiv 2411.04975): counts of all runs of tokens of this text,
prompt included, and those of texts that earlier runs wrote. Of both the continuation of the higher
score is guessed. Every guess is certain (a point mass).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import torch

from app.decoding.contracts import Asking, Draft
from app.decoding.proposers.count_trie import Continuation, CountTrie, GrowingText, Spot
from app.decoding.proposers.ngram import up_to_end
from app.models.block import Block


class Suffix:
    """Counts the text as it grows; what earlier texts have counted stays as it is."""

    def __init__(
        self,
        *,
        depth: int,
        factor: float,
        offset: float,
        least_probability: float,
        end_ids: Collection[int],
        earlier: CountTrie | None = None,
        device: torch.device | None = None,
        prompt: Sequence[int] = (),
    ) -> None:
        """A guess behind a match of m tokens has at most m * factor + offset tokens, each path of
        which is estimated to have `least_probability`. The prompt is counted here and now, so that
        no round is the longer for it.
        """
        self._text = GrowingText(own := CountTrie(depth))
        self._own, self._earlier = own, earlier or CountTrie(depth)
        self._factor, self._offset, self._least = factor, offset, least_probability
        self._end_ids = frozenset(end_ids)
        self._device = device
        self._count(prompt)

    def propose(self, text: Sequence[int], *, limit: int, round_: int) -> Asking:
        """The continuation of the higher score, this text's own of equals."""
        self._count(text)
        here = self._best(self._own, self._text.ends(), limit)
        there = self._best(self._earlier, self._earlier.ends_of(text), limit)
        own = here.score >= there.score
        guesses = up_to_end(list((here if own else there).tokens), self._end_ids)
        return Draft(
            Block(guesses, device=self._device),
            source="suffix" if own else "suffix-earlier",
            stop="" if guesses else "no match",
        )
        yield  # makes this a generator, as the loop expects

    def _count(self, text: Sequence[int]) -> None:
        """Takes in what is new of the text."""
        for token in text[len(self._text.tokens) :]:
            self._text.append(token)

    def _best(self, trie: CountTrie, spots: Iterable[Spot], limit: int) -> Continuation:
        return trie.best_of(
            spots, limit=limit, factor=self._factor, offset=self._offset, least=self._least
        )
