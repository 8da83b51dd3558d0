"""Teaching a draft head: what is asked for, and what is told of it, as structs for the pipe."""

from __future__ import annotations

from app.run.events import Struct
from app.run.settings import Precision

VOCABULARY = 8192
WRITING_SHARE = 0.5
DISK_GIB = 8.0


class Teach(Struct, frozen=True, tag=True):
    """A wish: a draft head for a target, from texts that the target itself writes."""

    target: str
    """The name of a pair or of a model, or a folder."""
    out: str
    """The folder for texts, checkpoint and head; one that holds them already is gone on with."""
    minutes: float
    prompts: str = ""
    """A file of prompts; empty for generated ones."""
    draft_vocabulary: int = VOCABULARY
    """Tokens that the head can guess."""
    writing_share: float = WRITING_SHARE
    """The part of the time in which the target writes; in the rest the head learns."""
    seed: int = 0
    disk_gib: float = DISK_GIB
    """Most room that the texts may take."""
    device: str | None = None
    precision: Precision | None = None


class CurvePoint(Struct, frozen=True, tag=True):
    """How good a head was at one moment of its lessons."""

    tokens: int
    """Tokens learned from so far; those of each visit count."""
    seconds: float
    """Spent on lessons so far."""
    acceptance: tuple[float, ...]
    """By depth, over held-out texts: of the guesses whose forerunners were kept, the share kept."""
    kept: float
    """Guesses kept of a draft as deep as that, on average."""
    loss: tuple[float, ...]
    """By depth of the lessons since the point before, in nats; none at the beginning."""


class Taught(Struct, frozen=True, tag=True):
    """What came of it."""

    head: str
    """The folder of the head."""
    best: CurvePoint
    curve: tuple[CurvePoint, ...]
    coverage: float
    """The share of the written tokens that the head can guess."""
    written: int
    """Tokens that the target wrote to learn from."""
    writing_seconds: float
    stopped_early: bool
    """Whether it ended because it no longer got better."""
