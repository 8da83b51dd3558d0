"""Turns a growing repetition into the pieces of text that a lane appends, each once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from app.gui.lane_spans import Placed
from app.run.events import Round, Token
from app.run.record import Repetition


@dataclass(frozen=True)
class Piece:
    """Characters to append, and the tokens that make them."""

    text: str
    tokens: tuple[Placed, ...]
    opens_round: bool


class LaneFeed:
    """Reads a repetition forwards. Text that may yet turn out to be a stop string stays back."""

    def __init__(self, repetition: Repetition, *, thrown: bool) -> None:
        self._repetition = repetition
        self._thrown = thrown
        self._waiting: deque[Placed] = deque()
        self._rounds_read = 0
        self._first_read = False
        self._length = 0
        self._given = 0
        self._of_token = 0
        self._unfinished: list[Placed] = []
        self._last_round = -1
        self._opens = False
        self._tail_given = False

    @property
    def behind(self) -> bool:
        """Whether there are rounds that have not been read yet."""
        return self._rounds_read < len(self._repetition.rounds)

    def pieces(self, most_tokens: int) -> Iterator[Piece]:
        """What can be shown by now and has not been given before."""
        self._read(most_tokens)
        limit = self._length - self._held_back()
        while self._waiting and (self._given < limit or not self._left_of_token()):
            piece = self._next_piece(limit - self._given)
            if piece.text:
                yield piece
        yield from self._tail()

    def _read(self, most_tokens: int) -> None:
        """Queues the tokens of the next rounds, at most about so many."""
        if self._repetition.first and not self._first_read:
            self._first_read = True
            self._queue(Placed(self._repetition.first, None, thrown=False))
        for round_ in self._repetition.rounds[self._rounds_read : self._rounds_read + most_tokens]:
            if most_tokens <= 0:
                break
            self._rounds_read += 1
            most_tokens -= len(round_.committed)
            for placed in in_text_order(round_, thrown=self._thrown):
                self._queue(placed)

    def _queue(self, placed: Placed) -> None:
        self._waiting.append(placed)
        self._length += 0 if placed.thrown else len(placed.token.text)

    def _held_back(self) -> int:
        """How many of the characters read so far are not to be shown, or not yet."""
        if not self.behind:
            return self._repetition.held_back + max(
                0, self._repetition.dropped - len(self._repetition.tail)
            )
        return self._repetition.rounds[self._rounds_read - 1].held_back if self._rounds_read else 0

    def _left_of_token(self) -> str:
        """What is still to be given of the token that comes next."""
        placed = self._waiting[0]
        return "" if placed.thrown else placed.token.text[self._of_token :]

    def _next_piece(self, room: int) -> Piece:
        """The next token, or as much of it as there is room for."""
        placed = self._waiting[0]
        text = placed.token.text if placed.thrown else self._left_of_token()[: max(room, 0)]
        self._note_round(placed)
        if placed.thrown or self._of_token + len(text) == len(placed.token.text):
            self._waiting.popleft()
            self._of_token = 0
        else:
            self._of_token += len(text)
        self._given += 0 if placed.thrown else len(text)
        if placed.thrown:
            return self._piece(text or "·", (placed,))
        if not text:
            self._unfinished.append(placed)
            return Piece("", (), opens_round=False)
        tokens, self._unfinished = (*self._unfinished, placed), []
        return self._piece(text, tokens)

    def _piece(self, text: str, tokens: tuple[Placed, ...]) -> Piece:
        opens, self._opens = self._opens, False
        return Piece(text, tokens, opens)

    def _note_round(self, placed: Placed) -> None:
        """Remembers that the next piece opens a round, if this token does."""
        index = placed.round.index if placed.round else -1
        self._opens = self._opens or index != self._last_round
        self._last_round = index

    def _tail(self) -> Iterator[Piece]:
        """What no token will complete, once the lane has ended."""
        ended = self._repetition.finish is not None and not self.behind
        tail = self._repetition.tail
        tail = tail[: max(0, len(tail) - self._repetition.dropped)]
        if ended and tail and self._unfinished and not self._tail_given:
            self._tail_given = True
            yield Piece(tail, tuple(self._unfinished), opens_round=False)


def in_text_order(round_: Round, *, thrown: bool) -> Iterator[Placed]:
    """The tokens of a round: guesses kept, guesses thrown away (if wanted), the target's own."""
    kept: list[Token] = [token for token in round_.committed if token.status == "accepted"]
    own = [token for token in round_.committed if token.status != "accepted"]
    yield from (Placed(token, round_, thrown=False) for token in kept)
    if thrown:
        yield from (Placed(token, round_, thrown=True) for token in round_.thrown)
    yield from (Placed(token, round_, thrown=False) for token in own)
