"""What the catalogue offers and how each part of it stands on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from app.library.catalogue import Catalogue
from app.library.entries import Fault, ModelEntry, PairEntry
from app.library.sources import is_download_needed, look
from app.run.problems import Problem

Standing = Literal["ready", "to be converted", "to be fetched", "faulty"]
"""`ready`: loads now. `faulty`: nothing the program does will make it load."""


class ModelStanding(msgspec.Struct, frozen=True):
    """A model and how it stands."""

    entry: ModelEntry
    standing: Standing
    folder: Path | None = None
    download_bytes: int | None = None
    """What fetching will transfer, where the catalogue knows."""
    fault: str = ""
    """What is wrong, and what to do."""


class PairStanding(msgspec.Struct, frozen=True):
    """A pair, which stands as the worse of its models does."""

    entry: PairEntry
    standing: Standing
    default: bool


class Overview(msgspec.Struct, frozen=True):
    """Everything `foretoken models` tells."""

    models: tuple[ModelStanding, ...]
    pairs: tuple[PairStanding, ...]
    faults: tuple[Fault, ...]


def overview(catalogue: Catalogue) -> Overview:
    """Looks at every model of the catalogue on this machine; asks no network."""
    models = {entry.name: _model_standing(entry) for entry in catalogue.models}
    pairs = (
        PairStanding(entry, _pair_standing(entry, models), entry.name == catalogue.default)
        for entry in catalogue.pairs
    )
    return Overview(tuple(models.values()), tuple(pairs), catalogue.faults)


def _model_standing(entry: ModelEntry) -> ModelStanding:
    """How one model stands."""
    try:
        folder = look(entry)
    except Problem as problem:
        return ModelStanding(entry, "faulty", fault=str(problem))
    if folder is not None:
        return ModelStanding(entry, "ready", folder=folder)
    if is_download_needed(entry):
        return ModelStanding(entry, "to be fetched", download_bytes=entry.download_bytes)
    return ModelStanding(entry, "to be converted")


def _pair_standing(pair: PairEntry, models: dict[str, ModelStanding]) -> Standing:
    """The worst standing of its models."""
    order: tuple[Standing, ...] = ("ready", "to be converted", "to be fetched", "faulty")
    return max((models[name].standing for name in pair.models), key=order.index)
