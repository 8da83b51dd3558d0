"""What the ids of one tokenizer spell, in bytes, and the ids that spell given bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate

from app.library.vocabulary import Vocabulary
from app.models.tokenizer import Tokenizer

_NO_TEXT = re.compile("([\udc80-\udcff]+)")
"""Bytes that are no UTF-8, as Python's `surrogateescape` writes them."""
_LINE_END = "\n"


class Spelling:
    """A tokenizer that is told bytes: a text may end, or be cut, within a character."""

    def __init__(self, tokenizer: Tokenizer, vocabulary: Vocabulary) -> None:
        self.tokenizer = tokenizer
        self.texts = vocabulary.texts()
        """What each id stands for; special tokens stand for how they are written."""
        self._bytes = {
            text[0]: id_ for text, id_ in vocabulary.spellings().items() if len(text) == 1
        }

    def spelled(self, ids: Iterable[int]) -> bytes:
        """The bytes of ids one after another; an id without a token adds none."""
        return b"".join(self.texts.get(id_, b"") for id_ in ids)

    @property
    def opens_with_space(self) -> bool:
        """Whether it puts a space before every text, which is none of the text."""
        return self.spelled(self.tokenizer.encode("a")) == b" a"

    def cut(self, text: bytes, *, before: bytes = b"", strictly: bool = False) -> list[int] | None:
        """The ids of a text as it is cut behind `before`, within another text; where both run into
        one token, as it is cut by itself, or None if it is to be cut `strictly` so.

        Bytes that are no character become ids of single bytes. None where the tokenizer cuts no
        such text: it changes what it reads, or has no id for some byte.
        """
        ids: list[int] = []
        behind = _words(before)
        for part in _NO_TEXT.split(_words(text)):
            if _NO_TEXT.match(part):
                found = self._byte_ids(part)
            else:
                found = self._behind(behind, part, () if strictly else (_LINE_END, ""))
            if found is None:
                return None
            ids += found
            behind = part
        return ids

    def _byte_ids(self, part: str) -> list[int] | None:
        ids = [self._bytes.get(ord(mark) - 0xDC00) for mark in part]
        known = [id_ for id_ in ids if id_ is not None]
        return known if len(known) == len(ids) else None

    def _behind(self, before: str, text: str, else_: Sequence[str]) -> list[int] | None:
        """The ids of a text behind what comes before it; where those run into each other, behind
        the first of something `else_` that does not.
        """
        if not text:
            return []
        before = _NO_TEXT.split(before)[-1]
        for guard in dict.fromkeys((before, *else_)):
            ids = self.tokenizer.encode(guard + text)
            whole, place = (guard + text).encode(), len(guard.encode())
            spelled = self.spelled(ids)
            if spelled == b" " + whole:  # the space that some put before every text
                place += 1
            elif spelled != whole:
                continue
            ends = [0, *accumulate(len(self.texts[id_]) for id_ in ids)]
            if place in ends:
                return _from(ids, ends, place)
        return None


def _from(ids: Sequence[int], ends: Sequence[int], place: int) -> list[int]:
    """The ids from the one that begins at a place."""
    return list(ids[len(ends) - 1 - ends[::-1].index(place) :])


def _words(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
