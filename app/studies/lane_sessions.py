"""Opens the sessions of a lane: empty, or a conversation's own, with the room that each needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.decoding.contracts import Role
from app.models.early_exit import EarlyExit
from app.models.loading import LoadedModel
from app.models.pair import LoadedPair
from app.models.paired_session import Beside, PairedSession
from app.models.retold import Retold
from app.models.session import Session
from app.models.vocabulary_bridge import VocabularyBridge
from app.run.events import At
from app.run.methods import Method
from app.run.settings import RunSettings
from app.run.tree_shape import tree_shape
from app.studies.conversation import Conversation, Room


class ToldPrompt:
    """A prompt in a draft model's ids: told once for all lanes of a run, and all their texts."""

    def __init__(self) -> None:
        self._of: tuple[VocabularyBridge, tuple[int, ...]] | None = None
        self._told: Retold | None = None
        self._ids: tuple[int, ...] = ()

    def ids(self, bridge: VocabularyBridge, prompt: tuple[int, ...]) -> tuple[int, ...]:
        """The prompt as the draft model reads it."""
        self._tell(bridge, prompt)
        return self._ids

    def begun(self, bridge: VocabularyBridge, prompt: tuple[int, ...]) -> Retold:
        """The text so far, for a lane to go on with."""
        return self._tell(bridge, prompt).copy()

    def _tell(self, bridge: VocabularyBridge, prompt: tuple[int, ...]) -> Retold:
        if self._told is None or self._of != (bridge, prompt):
            self._of, self._told = (bridge, prompt), Retold(bridge)
            self._ids = tuple(self._told.follow(prompt))
        return self._told


@dataclass(frozen=True, slots=True)
class LaneSessions:
    """Opens the sessions of one run's lanes."""

    pair: LoadedPair
    settings: RunSettings
    prompt_ids: tuple[int, ...]
    context: int
    conversation: Conversation | None
    conversation_tokens: int
    told: ToldPrompt

    def open(
        self, at: At, beside: Beside | None, *, speculates: bool
    ) -> dict[Role, Session | PairedSession]:
        """A session for each role of a lane; `beside` guesses beside the target's session."""
        pair = self.pair
        opened = beside.open_target if beside else pair.target.model.open
        shape = tree_shape(self.settings) if speculates else None
        spare = shape.room(self.settings.draft_length) if shape else 0
        target = self._session(at, "target", pair.target, opened, spare=spare)
        sessions: dict[Role, Session | PairedSession] = {"target": target}
        if not speculates:
            return sessions
        if pair.draft is not None and self._method.drafter == "model":
            sessions["draft"] = self._draft_session(at, pair.draft)
        if isinstance(beside, EarlyExit):
            sessions["draft"] = beside.open(target, target.capacity)
        elif beside is not None:
            sessions["head"] = self._head_session(at, beside, target)
        return sessions

    @property
    def prompts(self) -> Mapping[Role, tuple[int, ...]]:
        """The prompt as the session of each role reads it."""
        return {"target": self.prompt_ids, "draft": self.draft_ids, "head": self.prompt_ids}

    @property
    def capacity(self) -> int:
        """Tokens that a session of the target has to hold in this run."""
        return min(len(self.prompt_ids) + self.settings.max_new_tokens, self.context)

    @property
    def bridge(self) -> VocabularyBridge | None:
        """What a method for different vocabularies needs; None for any other."""
        return self.pair.bridge if self._method.any_vocabulary else None

    @property
    def retold(self) -> Retold | None:
        """The prompt in the draft's own ids, for one lane to go on with; None without a bridge."""
        return self.told.begun(self.bridge, self.prompt_ids) if self.bridge else None

    @property
    def draft_ids(self) -> tuple[int, ...]:
        """The prompt as the draft model reads it."""
        return self.told.ids(self.bridge, self.prompt_ids) if self.bridge else self.prompt_ids

    @property
    def draft_room(self) -> Room:
        """As the target's, in the draft's own tokens: in a text twice as many as the target's, or
        half as many again as in the prompt, should they be that much shorter. Behind that the
        target writes alone.
        """
        prompt, mine = len(self.draft_ids), len(self.prompt_ids)
        share = max(2.0, 1.5 * prompt / mine)
        room = self._room
        needed, wanted = (
            prompt + math.ceil(share * (tokens - mine)) for tokens in (room.needed, room.wanted)
        )
        return _within(Room(needed, wanted), self.pair.draft)

    @property
    def _method(self) -> Method:
        return Method.named(self.settings.method)

    @property
    def _room(self) -> Room:
        """Tokens of the target in this run, and in its conversation."""
        wanted = max(self.capacity, self.conversation_tokens)
        return Room(needed=self.capacity, wanted=min(wanted, self.context))

    def _draft_session(self, at: At, draft: LoadedModel) -> Session:
        opened = draft.model.open
        if self.bridge is None:
            return self._session(at, "draft", draft, opened)
        return self._opened(at, "draft", draft, opened, ids=self.draft_ids, room=self.draft_room)

    def _session(
        self,
        at: At,
        role: Role,
        loaded: LoadedModel,
        opened: Callable[[int], Session],
        *,
        spare: int = 0,
    ) -> Session:
        """A session that reads the target's ids, with `spare` room for guesses beside each
        other.
        """
        room = _within(self._room, loaded)
        room = Room(room.needed + spare, room.wanted + spare)
        return self._opened(at, role, loaded, opened, ids=self.prompt_ids, room=room)

    def _opened(
        self,
        at: At,
        role: Role,
        loaded: LoadedModel,
        opened: Callable[[int], Session],
        *,
        ids: tuple[int, ...],
        room: Room,
    ) -> Session:
        """An empty session, or the conversation's own."""
        if self.conversation is None:
            return opened(room.needed)
        return self.conversation.session(
            at, role, opened, rewinds=loaded.rewinding.holds, ids=ids, room=room
        )

    def _head_session(self, at: At, head: Beside, target: Session) -> PairedSession:
        """A session beside the target's, which lasts as long as that does."""
        if self.conversation is None:
            return head.open(target, target.capacity)
        return self.conversation.head_session(at, head, target, ids=self.prompt_ids)


def _within(room: Room, loaded: LoadedModel | None) -> Room:
    """As much of it as the model can hold."""
    most = loaded.model.context_length if loaded else 0
    return Room(min(room.needed, most), min(room.wanted, most))
