"""What becomes part of the text: one walk over a block, cut at the first thing that ends it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from app.models.detokenizer import Detokenizer
from app.run.events import Finish

_REMEMBERED = 64
"""Ids of an earlier text that are looked at when it is continued."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The start of a block that became text."""

    pieces: tuple[str, ...]
    """What each committed token added to the text."""
    finish: Finish | None
    """Why the text ends here, if it does."""
    held_back: int = 0
    """Characters at the end of the text that may begin a stop string."""
    dropped: int = 0
    """Characters at the end of the text from the first stop string on."""

    def __len__(self) -> int:
        return len(self.pieces)


@dataclass(slots=True)
class Text:
    """The text of one lane: the prompt, what was committed behind it, and what may end it."""

    ids: list[int]
    """Prompt and committed ids; it only grows."""
    detokenizer: Detokenizer
    max_new_tokens: int
    end_ids: Collection[int] = ()
    stop_strings: tuple[str, ...] = ()
    written: int = 0
    """Committed tokens."""
    _tail: str = field(default="")
    """The end of the text, long enough to find a stop string that begins in it."""

    def resume(self) -> None:
        """Goes on behind a text that was written before: its end may begin a stop string."""
        shown = "".join(map(self.detokenizer.add, self.ids[-_REMEMBERED:]))
        longest = max(map(len, self.stop_strings), default=1)
        self._tail = shown[max(len(shown) - longest + 1, 0) :]

    @property
    def remaining(self) -> int:
        """Tokens that may still be committed."""
        return self.max_new_tokens - self.written

    def commit(self, block: Sequence[int]) -> Committed:
        """Appends the ids of a block up to the first end of text, stop string, or the cap.

        At one token the end of the text and a stop string win over the cap.
        """
        pieces: list[str] = []
        finish: Finish | None = None
        dropped = 0
        for token in block:
            self.ids.append(token)
            self.written += 1
            pieces.append(self.detokenizer.add(token))
            dropped = self._dropped_after(pieces[-1])
            if token in self.end_ids:
                finish = "end of text"
            elif dropped:
                finish = "stop string"
            elif self.remaining <= 0:
                finish = "length"
            if finish:
                break
        held_back = 0 if finish else self._held_back()
        return Committed(tuple(pieces), finish, held_back, dropped)

    def _dropped_after(self, piece: str) -> int:
        """Characters from the first stop string on, once this piece has been added."""
        if not self.stop_strings:
            return 0
        whole = self._tail + piece
        found = [at for at in (whole.find(stop) for stop in self.stop_strings) if at >= 0]
        longest = max(map(len, self.stop_strings))
        self._tail = whole[max(len(whole) - longest + 1, 0) :]
        return len(whole) - min(found) if found else 0

    def _held_back(self) -> int:
        """Length of the longest end of the text that is the beginning of a stop string."""
        lengths = [
            n
            for stop in self.stop_strings
            for n in range(1, len(stop))
            if self._tail.endswith(stop[:n])
        ]
        return max(lengths, default=0)
