"""Who runs the passes that loops ask for, and whose turn it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from app.decoding.contracts import Answer, Chain, Read, Request, Role, Unread, WholeTree
from app.decoding.loop import LaneEvent, Steps
from app.models.causal_model import Advance
from app.models.exhausted import memory_guard
from app.models.growing import Growing, TreeGuesses, TreeSession
from app.models.paired_session import PairedSession
from app.models.picking import ChainReading, ChainSession, Picking
from app.models.session import Session
from app.run.events import FirstToken, RoundCommitted
from app.run.problems import Cancelled, Problem

Pause = Callable[[], None]
"""Called before every pass; raises Cancelled when a person has asked to stop."""


class Reader(Protocol):
    """Whatever answers a loop's requests."""

    def answer(self, request: Request) -> Answer:
        """The reading that a request asks for."""
        ...


class Sessions:
    """Answers with real sessions: one for each model that the lane asks."""

    def __init__(self, sessions: Mapping[Role, Session | PairedSession]) -> None:
        self._sessions = sessions

    @property
    def byte_count(self) -> int:
        """Bytes that the caches take."""
        return sum(session.byte_count for session in self._sessions.values())

    def held(self, role: Role) -> int:
        """Tokens that a role's session holds."""
        return self._sessions[role].held

    def prepare(self, role: Role, rows: int, *, behind: int, advance: Advance) -> None:
        """Does now what passes of a role's model need done before the first of them, of up to so
        many rows and `behind` so many tokens. Raises what `advance` does.
        """
        session = self._sessions.get(role)
        if isinstance(session, Session):
            session.prepare(rows, behind=behind, advance=advance)

    def prepare_chain(
        self,
        role: Role,
        counts: Sequence[int],
        how: Picking,
        *,
        behind: int,
        advance: Advance,
    ) -> None:
        """Does now what whole chains of guesses of these lengths need done before the first, where
        a role's session makes any. Raises what `advance` does.
        """
        session = self._sessions.get(role)
        if isinstance(session, ChainSession):
            session.prepare_chain(counts, how, behind=behind, advance=advance)

    def prepare_trees(
        self,
        role: Role,
        levels: Sequence[int],
        how: Growing,
        *,
        behind: int,
        advance: Advance,
    ) -> None:
        """Does now what whole trees of so many levels need done before the first, where a role's
        session makes any. Raises what `advance` does.
        """
        session = self._sessions.get(role)
        if isinstance(session, TreeSession):
            session.prepare_trees(levels, how, behind=behind, advance=advance)

    def rewind(self, texts: Mapping[Role, Sequence[int]]) -> None:
        """Forgets whatever is not the start of each role's own text."""
        for role, session in self._sessions.items():
            session.unread(texts[role])

    def answer(self, request: Request) -> Answer:
        """Runs the pass. Raises Problem when the device's memory is exhausted."""
        session = self._sessions[request.role]
        if isinstance(request, Unread):
            return session.unread(request.text)
        with memory_guard(f"in a pass of the {request.role}"):
            if isinstance(request, Chain):
                return _chain(session, request)
            if isinstance(request, WholeTree):
                return _tree(session, request)
            return session.read(request.text, request.block, rows=request.rows, upto=request.upto)


def _chain(session: Session | PairedSession, wanted: Chain) -> ChainReading | None:
    """The chain of a session that makes any."""
    if not isinstance(session, ChainSession):
        return None
    return session.chain(wanted.text, wanted.count, how=wanted.how, told=wanted.told)


def _tree(session: Session | PairedSession, wanted: WholeTree) -> TreeGuesses | None:
    """The tree of a session that makes any."""
    if not isinstance(session, TreeSession):
        return None
    return session.tree(wanted.text, wanted.levels, how=wanted.how, told=wanted.told)


def run_lane(steps: Steps, reader: Reader, pause: Pause) -> Iterator[LaneEvent]:
    """Drives one lane to its end, handing on its events."""
    step = next(steps, None)
    while step is not None:
        if isinstance(step, (Read, Unread, Chain, WholeTree)):
            step = _answered(steps, step, reader, pause)
        else:
            yield step
            step = next(steps, None)


def interleave(lanes: list[Iterator[LaneEvent]]) -> Iterator[LaneEvent]:
    """Drives lanes in turn: the one that has written least goes on until it commits.

    A lane is only left behind a commit, so each round's time is its own.
    """
    written = dict.fromkeys(range(len(lanes)), 0)
    while written:
        turn = min(written, key=lambda lane: written[lane])
        tokens = 0
        while tokens == 0:
            event = next(lanes[turn], None)
            if event is None:
                del written[turn]
                break
            tokens = _tokens(event)
            yield event
        else:
            written[turn] += tokens


def _answered(
    steps: Steps, request: Request, reader: Reader, pause: Pause
) -> LaneEvent | Request | None:
    """The loop's next step, once it has its answer or knows that it has to stop."""
    try:
        pause()
        answer = reader.answer(request)
    except (Cancelled, Problem) as stop:
        return _next_or_none(partial(steps.throw, stop))
    return _next_or_none(partial(steps.send, answer))


def _next_or_none(advance: Callable[[], LaneEvent | Request]) -> LaneEvent | Request | None:
    try:
        return advance()
    except StopIteration:
        return None


def _tokens(event: LaneEvent) -> int:
    if isinstance(event, FirstToken):
        return 1
    return len(event.round.committed) if isinstance(event, RoundCommitted) else 0
