"""An engine that is a script: runs made from a text, and a client that plays their events."""

from __future__ import annotations

import math
import random
import re
from collections import deque
from collections.abc import Iterable, Iterator

from recorded import TARGET, started

from app.engine.protocol import AskMemory, Command, EngineEnded, Message
from app.run.cost import PassCosts
from app.run.events import (
    At,
    Candidate,
    ConditionsSeen,
    FirstToken,
    Inspection,
    LaneEnded,
    LaneStarted,
    PassesCosted,
    Phases,
    PromptRead,
    Round,
    RoundCommitted,
    RunEnded,
    RunEvent,
    RunStarted,
    Token,
)
from app.run.flags import Flag
from app.run.preparation import EngineReady, Prepared
from app.run.record import RunRecord
from app.run.teaching import CurvePoint

STORY = (
    "The lighthouse keeper counted the ships that passed before the fog came in. There were nine "
    "of them on the first evening, seven on the second, and on the third evening there were none "
    "at all.\n\nHe wrote the numbers in a book: nine, seven, none. Then he lit the lamp, as he had "
    "done every evening, and waited for the fog to lift. When it lifted, there were ships again, "
    "more than he could count, and he wrote that down as well."
)
"""A text of the tests' own."""

TARGET_FACTS = TARGET


def pieces_of(text: str) -> list[str]:
    """The text in pieces about as long as tokens."""
    return re.findall(r"\s?\w{1,7}|\s?[^\w\s]|\s", text)


def prepared(pair: str = "embedded") -> Prepared:
    """The answer of an engine that has loaded this pair."""
    return Prepared(pair, TARGET, None, 8192, True)


def rounds_of(
    pieces: list[str], *, chance: float = 0.7, seed: int = 3, draft_length: int = 4
) -> Iterator[Round]:
    """Rounds that write these pieces, each guess kept by chance."""
    dice = random.Random(seed)
    place = index = 0
    while place < len(pieces):
        limit = min(draft_length, len(pieces) - place - 1)
        drafted = 0 if dice.random() < 0.12 else limit
        round_ = _round(index, pieces[place:], drafted, limit, dice=dice, chance=chance)
        yield round_
        place += len(round_.committed)
        index += 1


def _round(
    index: int, ahead: list[str], drafted: int, limit: int, *, dice: random.Random, chance: float
) -> Round:
    kept: list[Token] = []
    thrown: list[Token] = []
    for piece in ahead[:drafted]:
        p, draw = 0.2 + 0.7 * dice.random(), dice.random()
        if draw < chance:
            kept.append(_token(piece, "accepted", p=p, draw=draw, accept=chance))
        else:
            thrown.append(_token(" fog", "rejected", p=p / 9, draw=draw, accept=chance))
            break
    while thrown and len(kept) + len(thrown) < drafted:
        thrown.append(Token(7, " sea", "ignored", "ngram", draft_probability=0.4))
    own = "corrected" if thrown else "bonus" if kept else "plain"
    kept.append(_token(ahead[len(kept)], own, p=0.5 + 0.4 * dice.random()))
    seconds = 0.014 + 0.001 * drafted + 0.002 * dice.random()
    phases = Phases(draft=0.0004, verify=seconds, decide=0.0006, rest=0.0002)
    return Round(index, limit, "draft length", tuple(kept), tuple(thrown), phases)


def _token(text: str, status, *, p: float, draw=None, accept=None) -> Token:
    top = (Candidate(3, text, p), Candidate(4, " fog", 1 - p), Candidate(5, "\n", 0.001))
    guessed = status in ("accepted", "rejected")
    return Token(
        id=sum(map(ord, text)) % 5000,
        text=text,
        status=status,
        source="ngram" if guessed else None,
        target_probability=p,
        draft_probability=1.0 if guessed else None,
        accept_probability=accept,
        draw=draw,
        kept_by="rule" if status == "accepted" else None,
        inspection=Inspection(target=top, draft=top[:2] if guessed else ()),
    )


def run_of(
    text: str = STORY, *, run: str = "r", finish: str = "length", chance: float = 0.7, **settings
) -> list[RunEvent]:
    """A whole run whose lanes both write this text, in turns."""
    pieces = pieces_of(text)
    given = {
        "pair": "embedded",
        "order": "interleaved",
        "detail": "full",
        "max_new_tokens": len(pieces),
        **settings,
    }
    first = started(**given)
    head = RunStarted(**{**{f: getattr(first, f) for f in first.__struct_fields__}, "run": run})
    fast = list(lane_of("speculative", pieces, run=run, chance=chance, finish=finish))
    slow = list(lane_of("baseline", pieces, run=run, chance=0.0, finish=finish, draft_length=0))
    body = in_turns(fast, slow) if head.settings.baseline else fast
    return [head, *body, RunEnded(run, "finished", peak_bytes=930_000_000)]


def lane_of(lane, pieces: list[str], *, run: str, chance: float, finish, draft_length=4):
    """The events of one lane."""
    at = At(run, lane)
    yield LaneStarted(at)
    yield PromptRead(at, 40, 40)
    first = (
        Token(3, pieces[0], "first", target_probability=0.8) if pieces else Token(3, "", "first")
    )
    yield FirstToken(at, first, 0.061 if lane == "speculative" else 0.058)
    for round_ in rounds_of(pieces[1:], chance=chance, draft_length=draft_length):
        yield RoundCommitted(at, round_)
    yield LaneEnded(at, finish)


def costed(events: list[RunEvent], *, flags: tuple[Flag, ...] = ()) -> list[RunEvent]:
    """The same run with what its passes cost, and what was seen of the machine."""
    seconds = {width: 0.0128 + 0.0009 * width for width in range(1, 10)}
    run = events[0].run
    costs = PassCosts("target", "cpu, 2 threads", "fp32", "sdpa", 256, seconds, 9)
    seen = [ConditionsSeen(run, flags)] if flags else []
    return [*events[:-1], *seen, PassesCosted(run, costs), events[-1]]


def learning_curve() -> tuple[CurvePoint, ...]:
    """A curve as an hour on two slow cores draws it: steep, then flatter."""
    points = []
    for place in range(25):
        learned = 1 - math.exp(-place / 7)
        shares = (
            0.25 + 0.33 * learned,
            0.21 + 0.34 * learned,
            0.19 + 0.33 * learned + 0.01 * math.sin(place),
            0.22 + 0.26 * learned + 0.012 * math.cos(2 * place),
        )
        loss = tuple(first - 1.7 * learned for first in (3.8, 4.2, 4.4)) if place else ()
        kept = sum(math.prod(shares[:depth]) for depth in range(1, 5))
        points.append(CurvePoint(90_000 * place, 70.0 * place, shares, kept, loss))
    return tuple(points)


def stopped(events: list[RunEvent], *, after: int) -> list[RunEvent]:
    """The beginning of a run that Stop has ended."""
    begun = events[:after]
    lanes = [event.at for event in begun if isinstance(event, LaneStarted)]
    ended = {event.at for event in begun if isinstance(event, LaneEnded)}
    ends = [LaneEnded(at, "cancelled") for at in lanes if at not in ended]
    return [*begun, *ends, RunEnded(events[0].run, "cancelled")]


def in_turns(fast: list, slow: list) -> Iterator[RunEvent]:
    """Events of two lanes so that both come to their end together."""
    ahead = deque(slow)
    for place, event in enumerate(fast, 1):
        yield event
        while ahead and len(slow) - len(ahead) < len(slow) * place / len(fast):
            yield ahead.popleft()


def record_of(events: Iterable[RunEvent]) -> RunRecord:
    """The record of these events."""
    first, *others = events
    record = RunRecord.begin(first)
    for event in others:
        record.apply(event)
    return record


class ScriptedClient:
    """Plays messages that a test hands over; stands in for the engine's client."""

    def __init__(self) -> None:
        self.record: RunRecord | None = None
        self.sent: list[Command] = []
        self.looks: list[AskMemory] = []
        """Questions what is free, which are asked beside everything else."""
        self.starts = 0
        self.closed = False
        self.alive = False
        self._arrived: deque[Message] = deque()

    def start(self) -> None:
        self.alive = True
        self.starts += 1

    def send(self, command: Command) -> None:
        if not self.alive:
            self.start()
        if isinstance(command, AskMemory):
            self.looks.append(command)
        else:
            self.sent.append(command)

    def play(self, *messages: Message) -> None:
        """Lets these messages arrive."""
        self._arrived.extend(messages)

    def drain(self) -> list[Message]:
        arrived = list(self._arrived)
        self._arrived.clear()
        for message in arrived:
            if isinstance(message, RunStarted):
                self.record = RunRecord.begin(message)
            elif isinstance(message, EngineEnded):
                self.alive = message.expected and self.alive
                if self.record and self.record.outcome == "running":
                    self.record.close("engine ended", message=message.reason)
            elif isinstance(message, RunEvent) and self.record:
                self.record.apply(message)
        return arrived

    def kill(self) -> None:
        self.alive = False
        self.play(EngineEnded("The engine was ended at once, as asked.", expected=True))

    def close(self, timeout: float = 3.0) -> None:
        self.alive = False
        self.closed = True
        self._arrived.clear()

    def ready(self) -> None:
        """An engine that has started and loaded its pair."""
        self.play(EngineReady("2", "cpu, 2 threads"), prepared())
