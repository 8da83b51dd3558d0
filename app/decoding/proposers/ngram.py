"""Guess that the text goes on as it did the last time the same few tokens were seen.

Prompt lookup decoding: the longest match of the text's end in [min, max] tokens, at its most recent
place; what was written so far counts as text too. Every guess is certain (a point mass).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

from app.decoding.contracts import Asking, Draft
from app.models.session import Block
from app.run.problems import Problem


class Ngram:
    """Looks the end of the text up in all of the text before it."""

    def __init__(
        self,
        *,
        shortest: int,
        longest: int,
        end_ids: Collection[int],
        device: torch.device | None = None,
    ) -> None:
        if shortest > longest:
            raise Problem(
                f"The shortest match ({shortest}) is longer than the longest ({longest}).",
                "Lower the shortest match, or raise the longest.",
            )
        self._sizes = range(longest, shortest - 1, -1)
        self._end_ids = frozenset(end_ids)
        self._device = device
        self._last_end: dict[tuple[int, ...], int] = {}
        """Where each run of tokens ended last, of those that something follows."""
        self._indexed = 0

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
                    self._last_end[tuple(text[end + 1 - size : end + 1])] = end
        self._indexed = max(self._indexed, len(text) - 1)

    def _continuation(self, text: Sequence[int], limit: int) -> list[int]:
        for size in self._sizes:
            end = self._last_end.get(tuple(text[-size:])) if size <= len(text) else None
            if end is not None:
                return self._up_to_end(list(text[end + 1 : end + 1 + max(limit, 0)]))
        return []

    def _up_to_end(self, guesses: list[int]) -> list[int]:
        """Nothing is guessed behind an end of text."""
        for place, token in enumerate(guesses):
            if token in self._end_ids:
                return guesses[: place + 1]
        return guesses
