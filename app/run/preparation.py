"""Which models are to be ready, and what is known of them once they are."""

from __future__ import annotations

from app.run.events import ModelFacts, Struct
from app.run.methods import Method
from app.run.settings import PassKind, Precision, RunSettings


class Prepare(Struct, frozen=True, tag=True):
    """Make the models of a pair ready: fetch, convert, load, prove. Answered by Prepared."""

    pair: str
    precision: Precision | None = None
    """The target's; None leaves the choice to this machine."""
    draft_precision: Precision | None = None
    """The draft model's; None takes the pair's own."""
    device: str | None = None
    """The target's; None leaves the choice to this machine."""
    draft_device: str | None = None
    """The draft model's; None takes the pair's own, or else the target's."""
    allow_offload: bool = False
    """Whether weights that a card has no room for may stay in the machine's own memory."""
    passes: PassKind = "auto"
    """How passes are to be computed."""
    mtp: bool = False
    """Whether the target's own modules for multi-token prediction are to be loaded too."""


def preparation(settings: RunSettings) -> Prepare:
    """The models that a run with these settings needs."""
    return Prepare(
        settings.pair,
        precision=settings.precision,
        draft_precision=settings.draft_precision,
        device=settings.device,
        draft_device=settings.draft_device,
        allow_offload=settings.allow_offload,
        passes=settings.passes,
        mtp=Method.named(settings.method).drafter == "mtp",
    )


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


class Release(Struct, frozen=True, tag=True):
    """Let go of every model that is kept ready. Answered by Released."""


class Released(Struct, frozen=True, tag=True):
    """No model is loaded any more; the next run loads what it needs."""

    models: tuple[str, ...] = ()
    """Those that were let go."""
    weight_bytes: int = 0
    """What their weights took."""


class PrecisionsRefused(Struct, frozen=True, tag=True):
    """What the devices here cannot take; sent once, when the engine has nothing else to do."""

    reasons: dict[str, dict[str, str]]
    """By kind of device ("cuda") and precision: why not, and what to choose, in a sentence or two.
    """


class DeviceMemory(Struct, frozen=True):
    """The memory of a device that models can be loaded onto, in bytes."""

    name: str
    """As settings name it: "cuda:1"."""
    title: str
    """As a person knows it."""
    free_bytes: int
    """What a run could take when it was asked for: what models of ours hold now makes room."""
    total_bytes: int
    ours_bytes: int = 0
    """Of what is free, what models of ours held when it was asked for."""


class EngineReady(Struct, frozen=True, tag=True):
    """The engine has imported what it needs and waits for commands."""

    torch: str
    device: str
    """The device that is taken unless another is asked for, in words."""
    memory: tuple[DeviceMemory, ...] = ()
    """Of every device here; the one that is taken by itself first."""
