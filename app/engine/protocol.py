"""What crosses the pipe between the window and its engine, as msgpack-encoded structs."""

from __future__ import annotations

import msgspec

from app.run.auditing import Audit, Audited
from app.run.events import (
    Abandoned,
    ConditionsSeen,
    Divergence,
    FirstToken,
    LaneEnded,
    LaneStarted,
    PassesCosted,
    Progress,
    PromptRead,
    RoundCommitted,
    RunEnded,
    RunStarted,
    Struct,
)
from app.run.preparation import (
    DeviceMemory,
    EngineReady,
    PrecisionsRefused,
    Prepare,
    Prepared,
    Release,
    Released,
)
from app.run.settings import RunSettings
from app.run.teaching import CurvePoint, Taught, Teach


class Run(Struct, frozen=True, tag=True):
    """Run these settings; the models are made ready first if they are not."""

    run: str
    settings: RunSettings


class Stop(Struct, frozen=True, tag=True):
    """End every job asked for so far, the one at hand within one forward pass."""


class CountTokens(Struct, frozen=True, tag=True):
    """How many tokens would this prompt be? Answered by TokenCount, also while a job goes on."""

    question: int
    prompt: str
    system: str = ""
    raw: bool = False


class AskMemory(Struct, frozen=True, tag=True):
    """What is free now? Answered by MemoryFree, also while a job goes on."""

    question: int


class Quit(Struct, frozen=True, tag=True):
    """End the engine."""


Work = Prepare | Run | Audit | Teach | Release
"""What is done on the models, one after the other: a job."""

Question = CountTokens | AskMemory
"""What is answered at once, between two passes."""

Command = Work | Question | Stop | Quit


class TokenCount(Struct, frozen=True, tag=True):
    """The answer to CountTokens."""

    question: int
    tokens: int


class MemoryFree(Struct, frozen=True, tag=True):
    """The answer to AskMemory: every device, the one that is taken by itself first."""

    question: int
    memory: tuple[DeviceMemory, ...]


class JobProblem(Struct, frozen=True, tag=True):
    """What was asked could not be done; a run that has started says so in RunEnded instead."""

    message: str
    remedy: str = ""
    question: int | None = None
    """The question that this answers; None ends the job at hand."""


class JobCancelled(Struct, frozen=True, tag=True):
    """Prepare, an audit, a training, or a run that had not started yet, was stopped on request."""


class EngineEnded(Struct, frozen=True, tag=True):
    """The engine process is gone. Made by the client, never sent through the pipe."""

    reason: str
    """In words, and what to do: closed, killed by signal 9, ended with code 3, ..."""
    expected: bool
    """Whether this program asked for it."""


Message = (
    EngineReady
    | PrecisionsRefused
    | Prepared
    | Released
    | Audited
    | CurvePoint
    | Taught
    | TokenCount
    | MemoryFree
    | JobProblem
    | JobCancelled
    | EngineEnded
    | Progress
    | RunStarted
    | LaneStarted
    | PromptRead
    | FirstToken
    | RoundCommitted
    | Abandoned
    | LaneEnded
    | Divergence
    | ConditionsSeen
    | PassesCosted
    | RunEnded
)

encode = msgspec.msgpack.Encoder().encode
"""Turns a command or a message into bytes."""
decode_command = msgspec.msgpack.Decoder(Command).decode
"""Turns bytes into a command; raises msgspec.ValidationError."""
decode_message = msgspec.msgpack.Decoder(Message).decode
"""Turns bytes into a message; raises msgspec.ValidationError."""
