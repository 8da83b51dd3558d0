"""Guess that the text goes on as it did when the same few tokens were seen before.

Prompt lookup decoding: the longest match of the text's end in [min, max] tokens, at its first or
its most recent place, or where it went on as it mostly does; what was written so far counts as text
too. Every guess is certain (a point mass).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

from app.decoding.contracts import Asking, Draft
from app.decoding.proposers.match_places import make_places
from app.models.block import Block
from app.run.problems import Problem


class Ngram:
    """Looks the end of the text up in all of the text before it."""

    def __init__(
        self,
        *,
        shortest: int,
        longest: int,
        end_ids: Collection[int],
        match: str = "last",
        device: torch.device | None = None,
        prompt: Sequence[int] = (),
    ) -> None:
        """`match` says which place of the longest match is taken: last, first or most-frequent.

        The prompt is taken in here and now, so that no round is the longer for it.
        """
        if shortest > longest:
            raise Problem(
                f"The shortest match ({shortest}) is longer than the longest ({longest}).",
                "Lower the shortest match, or raise the longest.",
            )
        self._sizes = range(longest, shortest - 1, -1)
        self._end_ids = frozenset(end_ids)
        self._device = device
        self._places = make_places(match)
        """Where each run of tokens ended, of those that something follows."""
        self._indexed = 0
        self._index(prompt)

    def propose(self, text: Sequence[int], *, limit: int, round_: int) -> Asking:
        """The tokens that followed the longest match, at most `limit` of them."""
        self._index(text)
        guesses = self._continuation(text, limit)
        return Draft(
            Block(guesses, device=self._device),
            source="ngram",
            stop="" if guesses else "no match",
        )
        yield  # makes this a generator, as the loop expects

    def guesses(self, text: Sequence[int], behind: Sequence[int], limit: int) -> list[int]:
        """As `propose`, but what may follow the text and some ids behind it that are not text yet:
        these are looked up, and not learnt.
        """
        self._index(text)
        return self._continuation([*text, *behind], limit)

    def _index(self, text: Sequence[int]) -> None:
        """Takes in every run of tokens that ends before the text's last token."""
        for end in range(self._indexed, len(text) - 1):
            for size in self._sizes:
                if size <= end + 1:
                    run = tuple(text[end + 1 - size : end + 1])
                    self._places.note(run, end, follows=text[end + 1])
        self._indexed = max(self._indexed, len(text) - 1)

    def _continuation(self, text: Sequence[int], limit: int) -> list[int]:
        for size in self._sizes:
            end = self._places.find(tuple(text[-size:])) if size <= len(text) else None
            if end is not None:
                found = list(text[end + 1 : end + 1 + max(limit, 0)])
                return up_to_end(found, self._end_ids)
        return []


def up_to_end(guesses: list[int], end_ids: Collection[int]) -> list[int]:
    """These guesses up to the first end of a text: nothing is guessed behind it."""
    for place, token in enumerate(guesses):
        if token in end_ids:
            return guesses[: place + 1]
    return guesses
