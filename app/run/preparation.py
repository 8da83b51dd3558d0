"""Which models are to be ready, and what is known of them once they are."""

from __future__ import annotations

from app.run.events import ModelFacts, Struct
from app.run.settings import Precision


class Prepare(Struct, frozen=True, tag=True):
    """Make the models of a pair ready: fetch, convert, load, prove. Answered by Prepared."""

    pair: str
    precision: Precision | None = None
    """The target's; None leaves the choice to this machine."""
    draft_precision: Precision | None = None
    """The draft model's; None takes the pair's own."""
    device: str | None = None


class Prepared(Struct, frozen=True, tag=True):
    """The models of a pair are loaded."""

    pair: str
    target: ModelFacts
    draft: ModelFacts | None
    context_length: int
    lossless: bool
    """Whether the models can hold a lossless rule's promise."""
    notes: tuple[str, ...] = ()
    head: ModelFacts | None = None


class PrecisionsRefused(Struct, frozen=True, tag=True):
    """What the default device cannot take; sent once, when the engine has nothing else to do."""

    reasons: dict[str, str]
    """By precision: why not, and what to choose instead, in a sentence or two."""


class EngineReady(Struct, frozen=True, tag=True):
    """The engine has imported what it needs and waits for commands."""

    torch: str
    device: str
