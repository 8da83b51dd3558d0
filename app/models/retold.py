"""The target's text in the ids of a draft model of another vocabulary, kept up as it grows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from app.models.vocabulary_bridge import LOOK_BEHIND, VocabularyBridge


class Retold:
    """Follows one text, which only grows.

    What is new may join the token before it, so that the last tokens are cut anew with it; the ids
    before those stay. A list that was handed out is never changed: a session compares the next one
    with it, and forgets what is no longer said.
    """

    def __init__(self, bridge: VocabularyBridge) -> None:
        self._bridge = bridge
        self._read = 0
        self._text = b""
        """What the target's text says."""
        self._ids: list[int] = []
        self._ends: list[int] = []
        """Where in the text each id ends."""
        self._handed: list[int] = []
        """The ids with the draft's opening, as they were handed out."""

    def copy(self) -> Retold:
        """Another that has followed the same text, and goes its own way from here."""
        twin = Retold(self._bridge)
        twin._read, twin._text = self._read, self._text
        twin._ids, twin._ends, twin._handed = [*self._ids], [*self._ends], self._handed
        return twin

    def follow(self, text: Sequence[int]) -> list[int]:
        """The draft's ids of a text of the target's; `text` begins with what was followed before.

        Empty where it ends within a character that the draft cannot write, or says nothing.
        """
        self._text += self._bridge.said(text[self._read :], start=not self._read)
        self._read = len(text)
        if self._cut():
            return self._handed
        whole = self._text.decode("utf-8", "ignore")
        if whole.encode() != self._text:
            return []
        ids = self._bridge.spelling.tokenizer.encode(whole)
        return self._bridge.readable([*self._bridge.opening, *ids])

    def _cut(self) -> bool:
        """Cuts what is new, from a few tokens before it; False where that cannot be done."""
        if self._ends and self._ends[-1] == len(self._text):
            return True
        kept = len(self._ids)
        while True:
            kept = self._before(kept)
            fresh = self._from(kept)
            if fresh is not None:
                break
            if not kept:
                return False
        begin = self._ends[kept - 1] if kept else 0
        sizes = (len(self._bridge.spelling.texts[id_]) for id_ in fresh)
        ends = [begin + size for size in accumulate(sizes)]
        self._ids[kept:], self._ends[kept:] = fresh, ends
        opening = self._bridge.opening
        before = self._handed[: len(opening) + kept] or opening
        self._handed = [*before, *self._bridge.readable(fresh)]
        return True

    def _from(self, kept: int) -> list[int] | None:
        """The ids behind the first so many; None where those would not stay as they are."""
        spelling = self._bridge.spelling
        begin = self._ends[kept - 1] if kept else 0
        before = spelling.spelled(self._ids[max(kept - LOOK_BEHIND, 0) : kept])
        return spelling.cut(self._text[begin:], before=before, strictly=kept > 0)

    def _before(self, kept: int) -> int:
        """So many ids as leave a look-behind to be cut anew, not from within a character on."""
        kept = max(kept - LOOK_BEHIND, 0)
        while kept and self._text[self._ends[kept - 1]] & 0xC0 == 0x80:
            kept -= 1
        return kept
