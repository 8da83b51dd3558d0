"""One list of all models: those that the catalogue offers, and those found on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from app.library.catalogue import Catalogue
from app.library.checking import check_named
from app.library.entries import (
    Fault,
    FolderSource,
    HubSource,
    ModelEntry,
    ResourceSource,
    WheelSource,
)
from app.library.examining import Examined
from app.library.overview import ModelStanding, Standing, overview
from app.library.scan import Found
from app.library.scan_entry import Offering

CATALOGUE = "catalogue"
"""Where a model is that is not on this machine."""

_WHERE: dict[type, str] = {
    WheelSource: "Foretoken",
    ResourceSource: "Foretoken",
    HubSource: "Hugging Face cache",
    FolderSource: "your folder",
}
"""Where a model of each source lies, once it is here."""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A model of the list, or a faulty entry of a catalogue file."""

    key: str
    """Stays the same from one listing to the next."""
    title: str
    where: str
    standing: Standing
    entry: ModelEntry | None = None
    """The catalogue's, or one that would offer it; None if there can be none."""
    offered: bool = False
    """Whether the entry is the catalogue's."""
    roles: tuple[str, ...] = ()
    """What the catalogue's pairs use it as: target, draft, head."""
    pairs: tuple[str, ...] = ()
    """The titles of these pairs."""
    examined: Examined | None = None
    """What its headers say; None for what is not here."""
    download_bytes: int | None = None
    """What fetching will transfer, where the catalogue knows."""
    reason: str = ""
    """Why it cannot be used."""
    remedy: str = ""
    notes: tuple[str, ...] = ()
    fault: Fault | None = None

    @property
    def here(self) -> bool:
        """Whether something of it is on this machine."""
        return self.examined is not None

    @property
    def is_head(self) -> bool:
        """Whether it is a draft head, as far as is known."""
        known = self.examined is not None and self.examined.kind == "draft head"
        told = self.entry is not None and self.entry.kind != "model"
        return known or told or self.roles == ("head",)

    @property
    def path(self) -> Path | None:
        """Its folder, or its file; of a fault the file that it is in."""
        if self.fault is not None:
            return self.fault.file
        return self.examined.path if self.examined else None


def listing(catalogue: Catalogue, found: Iterable[Found] = ()) -> tuple[Listed, ...]:
    """Every model and every fault of the catalogue, then what was found beside it.

    Looks at each model of the catalogue on this machine; asks no network.
    """
    seen = overview(catalogue)
    offered = {one.entry.name: _of_catalogue(catalogue, one) for one in seen.models}
    offering = Offering(catalogue)
    places = {row.path: name for name, row in offered.items() if row.path is not None}
    others: dict[str, Listed] = {}
    for one in found:
        name = offering.offered_as(_hub(one), one.path) or places.get(one.path, "")
        if name in offered:
            offered[name] = msgspec.structs.replace(offered[name], where=one.place)
        elif _key(one.path) not in others:
            others[_key(one.path)] = _of_found(one, offering)
    faults = map(_of_fault, seen.faults)
    return (*offered.values(), *others.values(), *faults)


def _of_catalogue(catalogue: Catalogue, seen: ModelStanding) -> Listed:
    entry = seen.entry
    checked = check_named(_alone(entry), entry.name).models[0]
    pairs = [pair for pair in catalogue.pairs if entry.name in pair.models]
    roles = ("target", "draft", "head")
    here = checked.model
    unusable = seen.standing == "faulty" or (here is not None and checked.reason)
    return Listed(
        key=f"model {entry.name}",
        title=entry.title,
        where=_WHERE[type(entry.source)] if here else CATALOGUE,
        standing="faulty" if unusable else seen.standing,
        entry=entry,
        offered=True,
        roles=tuple(
            role for role in roles if any(getattr(pair, role) == entry.name for pair in pairs)
        ),
        pairs=tuple(pair.title for pair in pairs),
        examined=here,
        download_bytes=seen.download_bytes,
        reason=checked.reason if unusable else "",
        remedy=checked.remedy if unusable else "",
        notes=tuple(filter(None, (entry.note, *(here.notes if here else ()), *checked.notes))),
    )


def _of_found(found: Found, offering: Offering) -> Listed:
    lines = offering.entry(found.title, found.source) if found.source and found.loads else {}
    entry = None
    if found.source is not None and lines:
        entry = ModelEntry(next(iter(lines)), found.title, found.source)
    standing: Standing = "to be converted" if found.kind == "GGUF file" else "ready"
    return Listed(
        key=_key(found.path),
        title=found.title,
        where=found.place,
        standing=standing if entry is not None else "faulty",
        entry=entry,
        examined=found,
        reason=found.reason if found.reason or entry else " ".join(found.notes),
        remedy=found.remedy,
        notes=found.notes if found.reason or entry else (),
    )


def _of_fault(fault: Fault) -> Listed:
    return Listed(
        key=f"fault {fault.file} {fault.line} {fault.column} {fault.message}",
        title=f"{fault.file.name}, line {fault.line}, column {fault.column}",
        where=CATALOGUE,
        standing="faulty",
        reason=fault.message,
        remedy=fault.remedy,
        fault=fault,
    )


def _alone(entry: ModelEntry) -> Catalogue:
    """A catalogue of one model: a pair may have the same name."""
    return Catalogue(models=(entry,))


def _hub(found: Found) -> HubSource | None:
    return found.source if isinstance(found.source, HubSource) else None


def _key(path: Path) -> str:
    return f"path {path}"
