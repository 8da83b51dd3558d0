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


class DeviceMemory(Struct, frozen=True):
    """The memory of a device that models can be loaded onto, in bytes."""

    name: str
    """As settings name it: "cuda:1"."""
    title: str
    """As a person knows it."""
    free_bytes: int
    """What a run can still take, when it was asked for."""
    total_bytes: int


class EngineReady(Struct, frozen=True, tag=True):
    """The engine has imported what it needs and waits for commands."""

    torch: str
    device: str
    memory: tuple[DeviceMemory, ...] = ()
    """Of every device here, when the engine began; the one that is taken by itself first."""
