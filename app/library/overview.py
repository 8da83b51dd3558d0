"""What the catalogue offers and how each part of it stands on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import msgspec

from app.library.catalogue import Catalogue
from app.library.entries import Fault, ModelEntry, PairEntry
from app.library.sources import is_download_needed, look
from app.run.problems import Problem
from app.run.sizes import bytes_in_words

Standing = Literal["ready", "to be converted", "to be fetched", "faulty"]
"""`ready`: loads now. `faulty`: nothing the program does will make it load."""

STANDINGS: tuple[Standing, ...] = get_args(Standing)
"""From the best to the worst."""


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
    download_bytes: int | None = 0
    """What fetching its models will transfer; None: one of them does not say."""

    @property
    def words(self) -> str:
        """How it stands, in words."""
        return standing_words(self.standing, self.download_bytes)


class Overview(msgspec.Struct, frozen=True):
    """Everything `foretoken models` tells."""

    models: tuple[ModelStanding, ...]
    pairs: tuple[PairStanding, ...]
    """The default first, then by how they stand."""
    faults: tuple[Fault, ...]


def overview(catalogue: Catalogue) -> Overview:
    """Looks at every model of the catalogue on this machine; asks no network."""
    models = {entry.name: _model_standing(entry) for entry in catalogue.models}
    pairs = [
        _pair_standing(entry, models, default=entry.name == catalogue.default)
        for entry in catalogue.pairs
    ]
    pairs.sort(key=lambda pair: (not pair.default, STANDINGS.index(pair.standing)))
    return Overview(tuple(models.values()), tuple(pairs), catalogue.faults)


def standing_words(standing: Standing, download_bytes: int | None) -> str:
    """How something stands, with what is to be fetched."""
    return f"{standing}, {size_words(download_bytes)}" if standing == "to be fetched" else standing


def size_words(size: int | None) -> str:
    """So many bytes, as a person reads them."""
    return "size unknown" if size is None else bytes_in_words(size)


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


def _pair_standing(
    pair: PairEntry, models: dict[str, ModelStanding], *, default: bool
) -> PairStanding:
    """A pair: the worst standing of its models, and all that is to be fetched for them."""
    parts = [models[name] for name in pair.models]
    standing = max((part.standing for part in parts), key=STANDINGS.index)
    sizes = [part.download_bytes for part in parts if part.standing == "to be fetched"]
    known = [size for size in sizes if size is not None]
    total = sum(known) if len(known) == len(sizes) else None
    return PairStanding(pair, standing, default, total)
