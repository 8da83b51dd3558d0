"""The sessions of a conversation: what a lane reads in one turn it need not read in the next.

A turn may reuse what the turns before have read, and nothing else: its repetitions all begin with
the same part of the prompt in their caches. Before the first turn there is nothing to reuse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.decoding.contracts import Role
from app.models.paired_session import Beside, PairedSession
from app.models.session import Session
from app.models.tokenizer import Tokenizer
from app.run.events import At, LaneName
from app.run.settings import Message, RunSettings

_SOME_REPLY = "-"
"""Stands for a reply that is not written yet: templates may refuse an empty one."""


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens that a session is opened for."""

    needed: int
    """Of the prompt and the text of this turn."""
    wanted: int
    """Of the whole conversation."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A session, the turn it last served, and how much of that turn's prompt it began with."""

    session: Session
    turn: int
    carried: int


class Conversation:
    """One session for each lane and model, from turn to turn."""

    def __init__(self, turns: Sequence[str]) -> None:
        self._turns = turns
        self._kept: dict[tuple[LaneName, Role], _Kept] = {}
        self._heads: dict[LaneName, PairedSession] = {}

    def tokens(self, settings: RunSettings, tokenizer: Tokenizer) -> int:
        """Tokens of all turns, if every reply from this turn on is as long as it may be."""
        ahead = [settings.prompt, *self._turns[settings.turn + 1 :]]
        said = [
            message
            for turn in ahead[:-1]
            for message in (Message("user", turn), Message("assistant", _SOME_REPLY))
        ]
        ids = tokenizer.encode_prompt(
            ahead[-1],
            system=settings.system,
            earlier=(*settings.earlier, *said),
            raw=settings.raw,
        )
        return len(ids) + len(ahead) * settings.max_new_tokens

    def session(
        self,
        at: At,
        role: Role,
        opened: Callable[[int], Session],
        *,
        rewinds: bool,
        ids: tuple[int, ...],
        room: Room,
    ) -> Session:
        """The lane's session, which holds what earlier turns have read of the start of `ids`.

        One newly `opened` for so many tokens where that is nothing, where it is too small, where it
        reads in another way than new ones would, and unless the model `rewinds`: it cannot take
        back what the text does not say.
        """
        kept = self._kept.pop((at.lane, role), None)
        carried = 0
        fits = kept is not None and rewinds and kept.session.capacity >= room.needed
        if kept is not None and fits and kept.session.is_current:
            carried = kept.carried if kept.turn == at.turn else _shared(kept.session, ids)
        session = kept.session if kept is not None and carried else None
        del kept  # so that two caches never lie in memory for one lane
        session = session or opened(room.wanted)
        session.unread(ids[:carried])  # forgets what another repetition of this turn has read
        self._kept[at.lane, role] = _Kept(session, at.turn, carried)
        return session

    def head_session(
        self, at: At, head: Beside, target: Session, *, ids: tuple[int, ...]
    ) -> PairedSession:
        """The head's session beside the lane's target, with what that has carried over."""
        kept = self._heads.get(at.lane)
        session = kept if kept and kept.target is target else head.open(target, target.capacity)
        session.unread(ids[: target.held])  # forgets what the target's session has forgotten
        self._heads[at.lane] = session
        return session


def _shared(session: Session, ids: tuple[int, ...]) -> int:
    """How many of these ids the session holds; the last has to be read to say what follows it."""
    return min(len(ids) - session.unread(ids), len(ids) - 1)
