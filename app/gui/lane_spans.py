"""Which stretch of a lane's document shows which tokens, and which text of the record that is."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from app.run.events import Round, Token


@dataclass(frozen=True)
class Placed:
    """A token and the round it came from; None for the token of the prompt pass."""

    token: Token
    round: Round | None
    thrown: bool


@dataclass(frozen=True)
class Span:
    """One stretch of the document: the tokens that make its characters."""

    start: int
    end: int
    text: str
    """The record's own characters."""
    tokens: tuple[Placed, ...]
    """Several where no token alone is a whole character; none where an earlier run wrote it."""

    @property
    def thrown(self) -> bool:
        """Whether this is a guess that was thrown away, and so no part of the text."""
        return bool(self.tokens) and self.tokens[-1].thrown

    @property
    def mixed(self) -> bool:
        """Whether the tokens of one character came to be in different ways."""
        return len({placed.token.status for placed in self.tokens}) > 1

    def part(self, first: int, last: int) -> str:
        """The characters that stand between two places of the document."""
        kept, place = [], self.start
        for character in self.text:
            # Qt counts UTF-16 units.
            width = 2 if ord(character) > 0xFFFF else 1
            if first < place + width and place < last:
                kept.append(character)
            place += width
        return "".join(kept)


class Spans:
    """The spans of a lane, in document order."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._starts: list[int] = []

    def __len__(self) -> int:
        return len(self._spans)

    def add(self, span: Span) -> None:
        """Appends a span; its start is not before the end of the last."""
        self._spans.append(span)
        self._starts.append(span.start)

    def at(self, place: int) -> Span | None:
        """The span that covers this place of the document."""
        index = bisect_right(self._starts, place) - 1
        if index < 0 or place >= self._spans[index].end:
            return None
        return self._spans[index]

    def text(self, first: int, last: int) -> str:
        """The record's text between two places; thrown guesses are no part of it."""
        index = max(bisect_right(self._starts, first) - 1, 0)
        parts = []
        while index < len(self._spans) and self._starts[index] < last:
            span = self._spans[index]
            if not span.thrown:
                whole = first <= span.start and span.end <= last
                parts.append(span.text if whole else span.part(first, last))
            index += 1
        return "".join(parts)
