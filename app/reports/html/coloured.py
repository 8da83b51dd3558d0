"""The text of a lane as runs of one colour each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise

import msgspec
from markupsafe import escape

from app.reports.html.visible import visible
from app.run.events import Round, Status, Token
from app.run.record import Repetition

LOOKS: dict[Status, str] = {
    "first": "",
    "plain": "",
    "accepted": "a",
    "corrected": "c",
    "bonus": "b",
    "rejected": "r",
    "ignored": "i",
    "discarded": "i",
}
"""The class of the style sheet that each status wears; plain text wears none."""

MOST_BYTES = 1_500_000
"""About so many bytes of a page may go to the text with the guesses that were thrown away."""

_MARKUP = 30
"""Bytes that a run's own markup takes, about."""


class Run(msgspec.Struct, frozen=True):
    """A stretch of text whose tokens look the same."""

    text: str
    look: str
    title: str
    """How its tokens came to be, in a few words."""


class Guesses(msgspec.Struct, frozen=True):
    """The text with the guesses that were thrown away, as far as there is room for it."""

    runs: list[Run]
    thrown: int
    """How many guesses were thrown away, whether there is room for them or not."""
    left_out: int
    """Loops at the end for which there was no room."""


class _Piece(msgspec.Struct, frozen=True):
    """The text of one token, and the loop that it came from; loop 0 is the prompt pass."""

    text: str
    status: Status
    loop: int


def coloured(repetition: Repetition) -> list[Run]:
    """The text of a repetition, as `Repetition.text` has it, in runs of equal colour."""
    pieces = [_piece(token, 0) for token in filter(None, [repetition.first])]
    for round_ in repetition.rounds:
        pieces += [_piece(token, round_.index + 1) for token in round_.committed]
    if repetition.tail:
        last = pieces[-1] if pieces else _Piece("", "plain", 0)
        pieces.append(_Piece(repetition.tail, last.status, last.loop))
    return _merged(_without_end(pieces, repetition.dropped), titled=True)


def with_guesses(repetition: Repetition, *, most_bytes: int = MOST_BYTES) -> Guesses:
    """The text of a repetition with the guesses that were thrown away, each in its place."""
    pieces = [_piece(token, 0) for token in filter(None, [repetition.first])]
    thrown = sum(len(round_.thrown) for round_ in repetition.rounds)
    room = most_bytes - sum(map(_size, pieces))
    for done, round_ in enumerate(repetition.rounds):
        more = [_piece(token, round_.index + 1) for token in _in_draft_order(round_)]
        room -= sum(map(_size, more)) + _MARKUP * _changes(more)
        if room < 0:
            return Guesses(_merged(pieces), thrown, len(repetition.rounds) - done)
        pieces += more
    return Guesses(_merged(pieces), thrown, 0)


def _in_draft_order(round_: Round) -> Iterator[Token]:
    """The accepted guesses, those thrown away, then the token that stands in their place."""
    own = [token for token in round_.committed if token.status != "accepted"]
    yield from (token for token in round_.committed if token.status == "accepted")
    yield from round_.thrown
    yield from own


def _piece(token: Token, loop: int) -> _Piece:
    return _Piece(token.text, token.status, loop)


def _without_end(pieces: Iterable[_Piece], characters: int) -> list[_Piece]:
    """The pieces without so many characters at their end."""
    kept = list(pieces)
    while characters and kept:
        last = kept.pop()
        if len(last.text) > characters:
            kept.append(msgspec.structs.replace(last, text=last.text[:-characters]))
        characters -= min(characters, len(last.text))
    return kept


def _merged(pieces: Iterable[_Piece], *, titled: bool = False) -> list[Run]:
    """One run for every stretch of pieces that look the same; pieces without text have none."""
    written = (piece for piece in pieces if piece.text)
    runs = []
    for look, alike in groupby(written, lambda piece: LOOKS[piece.status]):
        group = list(alike)
        title = _title(group) if titled else ""
        runs.append(Run("".join(piece.text for piece in group), look, title))
    return runs


def _title(group: list[_Piece]) -> str:
    """What a run's tokens are, and which loops they came from."""
    status, first, last = group[-1].status, group[0].loop, group[-1].loop
    if not last:
        return "from the prompt pass"
    return f"{status}, loop {last}" if first == last else f"{status}, loops {first}–{last}"


def _size(piece: _Piece) -> int:
    """Bytes that a piece's text takes in the page."""
    return len(escape(visible(piece.text)).encode())


def _changes(pieces: list[_Piece]) -> int:
    """How often the look changes, at most, from the piece before these on."""
    return 1 + sum(LOOKS[one.status] != LOOKS[other.status] for one, other in pairwise(pieces))
