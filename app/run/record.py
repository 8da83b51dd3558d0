"""A run as it is kept: Run, Lane, Repetition, Round, Token."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from app.run.cost import PassCosts
from app.run.events import (
    Abandoned,
    At,
    ConditionsSeen,
    Divergence,
    Environment,
    Finish,
    FirstToken,
    LaneEnded,
    LaneName,
    LaneStarted,
    ModelFacts,
    Outcome,
    PassesCosted,
    PromptRead,
    Round,
    RoundCommitted,
    RunEnded,
    RunEvent,
    RunStarted,
    Token,
)
from app.run.flags import Flag
from app.run.settings import RunSettings

SCHEMA: Literal[1] = 1
"""The version of the record's layout; it grows by one whenever a reader has to know."""


class Repetition(msgspec.Struct, forbid_unknown_fields=True, dict=True):
    """One pass of a lane over the prompt: from an empty session, or on from the turn before.

    It can remember what was counted of its rounds (`dict`): they are only ever added to.
    """

    at: At
    prompt_reused: int = 0
    """Tokens of the prompt that the target had read in the turns before, and did not read again."""
    prompt_read: int = 0
    first: Token | None = None
    time_to_first_token: float | None = None
    rounds: list[Round] = []
    abandoned: Abandoned | None = None
    finish: Finish | None = None
    dropped: int = 0
    tail: str = ""
    held_back: int = 0
    cache_bytes: int = 0

    @property
    def tokens(self) -> list[Token]:
        """Every committed token, in text order."""
        first = [self.first] if self.first else []
        return first + [token for round_ in self.rounds for token in round_.committed]

    @property
    def token_ids(self) -> list[int]:
        """The ids of every committed token, in text order."""
        return [token.id for token in self.tokens]

    @property
    def text(self) -> str:
        """The text written, without a stop string and what lies behind it."""
        whole = "".join(token.text for token in self.tokens) + self.tail
        return whole[: max(len(whole) - self.dropped, 0)]

    @property
    def whole(self) -> bool:
        """Whether it has come to its own end: nothing has cut it short."""
        return self.finish not in (None, "cancelled", "failed")

    def apply(
        self, event: PromptRead | FirstToken | RoundCommitted | Abandoned | LaneEnded
    ) -> None:
        """Takes in the next event of this repetition."""
        match event:
            case PromptRead():
                self.prompt_read = event.done
            case FirstToken():
                self.first, self.time_to_first_token = event.token, event.seconds
                self.held_back = event.held_back
            case RoundCommitted():
                self.rounds.append(event.round)
                self.held_back = event.round.held_back
            case Abandoned():
                self.abandoned = event
            case LaneEnded():
                self.finish, self.dropped = event.finish, event.dropped
                self.tail, self.cache_bytes = event.tail, event.cache_bytes
                self.held_back = 0


class Lane(msgspec.Struct, forbid_unknown_fields=True):
    """The repetitions of one lane, in the order in which they ran."""

    name: LaneName
    repetitions: list[Repetition] = []


class RunRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A whole run. `apply` is the only way in; every number is derived from what lies here."""

    run: str
    started: str
    settings: RunSettings
    environment: Environment
    target: ModelFacts
    draft: ModelFacts | None
    prompt_ids: tuple[int, ...]
    end_ids: tuple[int, ...]
    lossless: bool
    notes: tuple[str, ...] = ()
    draft_resident: bool = False
    lanes: list[Lane] = []
    order: list[At] = []
    """The repetitions in the order in which they were opened."""
    outcome: Outcome = "running"
    message: str = ""
    remedy: str = ""
    peak_bytes: int | None = None
    draft_peak_bytes: int | None = None
    divergence: Divergence | None = None
    """What was found at the first difference of the lanes' texts; null where they are equal."""
    flags: tuple[Flag, ...] = ()
    """What was seen of the machine; `app.run.flagged` adds what follows from the record itself."""
    costs: PassCosts | None = None
    """What passes cost at this run's context; null where they were not measured."""
    schema: Literal[1] = SCHEMA

    @classmethod
    def begin(cls, event: RunStarted) -> RunRecord:
        """The record of a run that has just started."""
        shared = {name: getattr(event, name) for name in event.__struct_fields__}
        return cls(**shared)

    @classmethod
    def of(cls, events: Iterable[RunEvent]) -> RunRecord:
        """The record of a run that has told these events, the first of which is RunStarted."""
        started, *rest = events
        assert isinstance(started, RunStarted)
        record = cls.begin(started)
        for event in rest:
            record.apply(event)
        return record

    def apply(self, event: RunEvent) -> None:
        """Takes in the next event. Raises KeyError for a lane that was never started."""
        if isinstance(event, RunEnded):
            self.outcome, self.message, self.remedy = event.outcome, event.message, event.remedy
            self.peak_bytes = event.peak_bytes
            self.draft_peak_bytes = event.draft_peak_bytes
        elif isinstance(event, Divergence):
            self.divergence = event
        elif isinstance(event, ConditionsSeen):
            self.flags = event.flags
        elif isinstance(event, PassesCosted):
            self.costs = event.costs
        elif isinstance(event, LaneStarted):
            self._lane(event.at.lane).repetitions.append(Repetition(event.at, event.prompt_reused))
            self.order.append(event.at)
        elif not isinstance(event, RunStarted):
            self._repetition(event.at).apply(event)

    def close(self, outcome: Outcome, *, message: str = "", remedy: str = "") -> None:
        """Ends a record whose run can tell nothing more, because its engine has ended."""
        self.apply(RunEnded(self.run, outcome, message, remedy))

    def repetitions(self, lane: LaneName) -> list[Repetition]:
        """The repetitions of a lane; none if the lane never opened."""
        return next((found.repetitions for found in self.lanes if found.name == lane), [])

    def rounds(self, lane: LaneName) -> list[Round]:
        """The rounds of all repetitions of a lane."""
        return [round_ for one in self.repetitions(lane) for round_ in one.rounds]

    def _lane(self, name: LaneName) -> Lane:
        found = next((lane for lane in self.lanes if lane.name == name), None)
        if found is None:
            found = Lane(name)
            self.lanes.append(found)
        return found

    def _repetition(self, at: At) -> Repetition:
        for repetition in reversed(self.repetitions(at.lane)):
            if repetition.at == at:
                return repetition
        raise KeyError(f"no lane was started at {at}")
