"""The catalogue: which models and pairs are on offer, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from app.library.catalogue_reading import read_catalogue_file
from app.library.entries import Fault, ModelEntry, PairEntry
from app.library.entry_reading import PlacedPair, nearest
from app.run.problems import Problem

_Entry = TypeVar("_Entry", ModelEntry, PairEntry)


class Catalogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every usable entry of the catalogue files, and what is wrong with the others."""

    models: tuple[ModelEntry, ...] = ()
    pairs: tuple[PairEntry, ...] = ()
    default: str | None = None
    """The name of the pair that opens first; None if there is no pair at all."""
    faults: tuple[Fault, ...] = ()

    def model(self, name: str) -> ModelEntry:
        """The model of this name. Raises Problem naming the known ones."""
        return _named("model", name, entries=self.models)

    def pair(self, name: str) -> PairEntry:
        """The pair of this name. Raises Problem naming the known ones."""
        return _named("pair", name, entries=self.pairs)

    def models_of(self, pair: str) -> tuple[ModelEntry, ...]:
        """The models of this pair, the target first. Raises Problem for an unknown pair."""
        return tuple(self.model(name) for name in self.pair(pair).models)


def load_catalogue(files: Sequence[Path]) -> Catalogue:
    """The entries of these files, later ones winning; never raises, a missing file is empty."""
    models: dict[str, ModelEntry] = {}
    placed: dict[str, PlacedPair] = {}
    defaults: list[tuple[str, Fault]] = []
    faults: list[Fault] = []
    for file in files:
        found = read_catalogue_file(file)
        models.update((entry.name, entry) for entry in found.models)
        placed.update((pair.entry.name, pair) for pair in found.pairs)
        defaults += [found.default] if found.default else []
        faults += found.faults
    pairs = [pair.entry for pair in placed.values() if not pair.faults(models)]
    faults += [fault for pair in placed.values() for fault in pair.faults(models)]
    default, default_faults = _default([pair.name for pair in pairs], defaults)
    return Catalogue(tuple(models.values()), tuple(pairs), default, (*faults, *default_faults))


def _default(names: list[str], asked: list[tuple[str, Fault]]) -> tuple[str | None, list[Fault]]:
    """The default that the last file asked for and that exists, else the first pair."""
    known = [name for name, _ in asked if name in names]
    faults = [fault for name, fault in asked if name not in names]
    first = names[0] if names else None
    return (known[-1] if known else first), faults


def _named(kind: str, name: str, *, entries: tuple[_Entry, ...]) -> _Entry:
    """The entry of this name, or Problem."""
    for entry in entries:
        if entry.name == name:
            return entry
    raise Problem(
        f"There is no {kind} named {name!r} in the catalogue.",
        nearest(name, (entry.name for entry in entries)),
    )
