"""Text from ids, token by token: append-only, and equal to decoding all ids at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

_LONGEST_CHARACTER = 4
"""Bytes of the longest UTF-8 character: so many byte tokens may wait for each other."""
_INCOMPLETE = "\ufffd"

Decode = Callable[[Sequence[int]], str]


class Detokenizer:
    """Turns ids into what the text grows by, looking only at a short window of them.

    A character spread over several tokens appears with the token that completes it; the tokens
    before it add nothing. Bytes that can never become a character appear as U+FFFD.
    """

    def __init__(self, decode: Decode, *, silent: Collection[int] = ()) -> None:
        self._decode = decode
        self._silent = frozenset(silent)
        """Ids that add no text: end-of-text tokens."""
        self._anchor: list[int] = []
        """The last tokens that have been shown: decoders treat the start of a text specially."""
        self._anchor_text = ""
        self._waiting: list[int] = []
        self._shown = 0
        """Characters of the waiting tokens' text that were shown already."""

    def add(self, token: int) -> str:
        """What the text grows by with this token."""
        if token in self._silent:
            return ""
        self._waiting.append(token)
        grown = self._grown()
        if not grown.endswith(_INCOMPLETE):
            self._settle()
            return grown
        if len(self._waiting) < _LONGEST_CHARACTER:
            return ""
        # Four bytes that end incomplete: all but the last mark are final.
        self._shown += len(grown) - 1
        return grown[:-1]

    def preview(self, token: int) -> str:
        """The text of one token as if it came next; nothing is kept."""
        whole = self._decode([*self._anchor, token])
        return whole[len(self._anchor_text) :]

    def flush(self) -> str:
        """What is left of a character that no further token will complete."""
        grown = self._grown() if self._waiting else ""
        self._settle()
        return grown

    def _grown(self) -> str:
        whole = self._decode([*self._anchor, *self._waiting])
        return whole[len(self._anchor_text) + self._shown :]

    def _settle(self) -> None:
        if self._waiting:
            self._anchor = self._waiting
            self._anchor_text = self._decode(self._anchor)
            self._waiting, self._shown = [], 0
