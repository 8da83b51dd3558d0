"""Both lanes as they are written, each token coloured by how it came to be, with a second cue."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.console import Console
from rich.style import Style

from app.cli.screen import say, write
from app.run.events import (
    FirstToken,
    LaneEnded,
    LaneStarted,
    RoundCommitted,
    RunEvent,
    Status,
    Token,
)
from app.run.record import Repetition

STYLES: dict[Status, Style] = {
    "first": Style(),
    "accepted": Style(color="green"),
    "corrected": Style(color="yellow", underline=True),
    "bonus": Style(color="cyan", bold=True, overline=True),
    "plain": Style(),
    "rejected": Style(color="red", strike=True),
    "ignored": Style(dim=True, strike=True),
    "discarded": Style(dim=True, strike=True),
}
"""How a token looks; without colours the lines above, below and through it remain."""

_HEADING = Style(bold=True)
_LEGEND: tuple[Status, ...] = ("accepted", "corrected", "bonus", "rejected")


class _Piece(msgspec.Struct, frozen=True):
    """Some text of one look; guesses thrown away are shown but are no part of the text."""

    text: str
    style: Style
    kept: bool = True


class TokenStream:
    """Writes the first repetition of each lane to a console while it goes on."""

    def __init__(
        self, console: Console, *, may_be_cut: bool = False, show_rejected: bool = False
    ) -> None:
        self._console = console
        self._late = may_be_cut
        """With stop strings the last round waits for the next: its end may not be text."""
        self._show_rejected = show_rejected
        self._waiting: list[_Piece] = []
        self._held_back = 0

    def show(self, event: RunEvent) -> None:
        """Shows what an event of a run adds."""
        match event:
            case LaneStarted(at=at) if at.repetition == 0:
                self._heading(at.lane == "speculative", at.lane.capitalize())
            case LaneStarted(at=at):
                say(self._console, f"{at.lane.capitalize()}, repetition {at.repetition + 1}")
            case FirstToken(at=at) if at.repetition == 0:
                self._take([self._piece(event.token)], event.held_back)
            case RoundCommitted(at=at) if at.repetition == 0:
                self._take(list(self._pieces(event)), event.round.held_back)
            case LaneEnded(at=at) if at.repetition == 0:
                self._end(event)

    def _heading(self, speculative: bool, name: str) -> None:
        write(self._console, f"\n{name}", style=_HEADING)
        if speculative:
            for status in _LEGEND if self._show_rejected else _LEGEND[:-1]:
                write(self._console, "  ")
                write(self._console, status, style=STYLES[status])
        say(self._console, "")

    def _pieces(self, event: RoundCommitted) -> Iterator[_Piece]:
        """A round's text: what was accepted, guesses thrown away if asked for, the last token."""
        committed = event.round.committed
        for token in committed:
            if token.status != "accepted" and self._show_rejected:
                yield from map(self._thrown, event.round.thrown)
            yield self._piece(token)
        if committed and committed[-1].status == "accepted" and self._show_rejected:
            yield from map(self._thrown, event.round.thrown)

    def _piece(self, token: Token) -> _Piece:
        return _Piece(token.text, STYLES[token.status])

    def _thrown(self, token: Token) -> _Piece:
        """A guess thrown away: struck through on a terminal, in brackets where nothing can be."""
        text = token.text if self._console.color_system else f"[-{token.text}-]"
        return _Piece(text, STYLES[token.status], kept=False)

    def _take(self, pieces: list[_Piece], held_back: int) -> None:
        if self._late:
            self._release(self._held_back)
        self._waiting += pieces
        self._held_back = held_back
        if not self._late:
            self._release(held_back)

    def _release(self, keep: int) -> None:
        """Writes what waits, but for the last `keep` characters of the text."""
        ready, self._waiting = _split(self._waiting, keep)
        for piece in ready:
            write(self._console, piece.text, style=piece.style)

    def _end(self, event: LaneEnded) -> None:
        self._waiting.append(_Piece(event.tail, STYLES["plain"]))
        self._waiting, _ = _split(self._waiting, event.dropped)
        self._release(0)
        self._held_back = 0
        say(self._console, f"\n({event.finish})", style=Style(dim=True))


def replay(repetition: Repetition) -> Iterator[RunEvent]:
    """The events of a repetition, as far as they show on a screen."""
    at = repetition.at
    yield LaneStarted(at)
    if repetition.first is not None:
        # How much of it was held back is not kept: all of it waits for the next round.
        held_back = len(repetition.first.text)
        seconds = repetition.time_to_first_token or 0.0
        yield FirstToken(at, repetition.first, seconds, held_back)
    for round_ in repetition.rounds:
        yield RoundCommitted(at, round_)
    ended = repetition.finish or "cancelled"
    yield LaneEnded(at, ended, dropped=repetition.dropped, tail=repetition.tail)


def _split(pieces: list[_Piece], keep: int) -> tuple[list[_Piece], list[_Piece]]:
    """The pieces before and those in the last `keep` characters of the text."""
    before, behind = list(pieces), list[_Piece]()
    while keep > 0 and before:
        piece = before.pop()
        size = len(piece.text) if piece.kept else 0
        if size > keep:
            cut = size - keep
            before.append(_Piece(piece.text[:cut], piece.style))
            piece = _Piece(piece.text[cut:], piece.style)
            size = keep
        behind.insert(0, piece)
        keep -= size
    return before, behind
