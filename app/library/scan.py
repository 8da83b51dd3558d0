"""The models on this machine: found in their usual places, and judged by their headers alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from app import files
from app.library.catalogue import Catalogue
from app.library.entries import FolderSource, HubSource
from app.library.examining import Examined, examine
from app.library.scan_candidates import Candidate, candidates_in
from app.library.scan_entry import Offering, written
from app.library.scan_hub import is_repository, repository_candidates
from app.library.scan_ollama import is_store, store_candidates
from app.library.scan_places import Place, usual_places
from app.library.scan_walk import Walk
from app.library.whole_folder import Pause

MOST = 1_000
"""Models that one scan looks into."""


class Found(Examined, frozen=True, kw_only=True):
    """A model on this machine."""

    title: str
    place: str
    """Whose place it lies in."""
    offered_as: str = ""
    """The name by which the catalogue offers it already."""
    entry: str = ""
    """What to paste into `models.yaml`; empty for what is offered, or cannot be loaded."""
    source: FolderSource | HubSource | None = None
    """How a catalogue names it; None if it cannot."""


class Looked(msgspec.Struct, frozen=True):
    """A place that was looked into."""

    whose: str
    folder: Path
    there: bool


class Scan(msgspec.Struct, frozen=True):
    """What a scan has found, where, and what it could not see."""

    found: tuple[Found, ...]
    places: tuple[Looked, ...]
    troubles: tuple[str, ...]
    entries: str
    """What to paste into `models.yaml` to offer all that can be loaded and is not offered yet."""


def scan(
    folders: Iterable[Path],
    catalogue: Catalogue,
    *,
    pause: Pause,
    report: Callable[[str], None] = lambda told: None,
    usual: bool = True,
) -> Scan:
    """Looks through the usual places, unless without them, and these folders; never reads weights.

    `pause` is called often and may raise Cancelled; `report` is told each path that is looked into.
    Nothing that lies there makes it fail: what cannot be seen is told as a trouble.
    """
    own = [Place("your folder", folder.expanduser().absolute()) for folder in folders]
    places = [*(usual_places() if usual else ()), *own]
    walk = Walk(pause, without=(files.cache_folder() / "converted",))
    looked = tuple(Looked(place.whose, place.folder, _is_there(place.folder)) for place in places)
    offering = Offering(catalogue)
    found: dict[Path, Found] = {}
    entries: dict[str, object] = {}
    for place, one in zip(places, looked, strict=True):
        if not one.there and place in own:
            walk.troubles.append(f"There is no folder {place.folder}.")
        for candidate in _candidates(place, walk) if one.there else ():
            pause()
            if len(found) == MOST:
                walk.troubles.append(f"Stopped at {MOST:,} models: there are more.")
                break
            key = _resolved(candidate.path)
            if key not in found:
                report(str(candidate.path))
                found[key] = judged(candidate, offering, entries)
    return Scan(tuple(found.values()), looked, tuple(walk.troubles), written(entries))


def _candidates(place: Place, walk: Walk) -> Iterator[Candidate]:
    """What may be a model in a place."""
    for folder in walk.below(place.folder):
        if place.layout == "ollama" or is_store(folder):
            walk.leave(folder)
            yield from store_candidates(folder.path, place.whose, walk)
        elif is_repository(folder):
            walk.leave(folder)
            by_name = place.layout == "hub" and folder.path.parent == place.folder
            yield from repository_candidates(folder, place.whose, walk, by_name=by_name)
        else:
            if "model_index.json" in folder.files:
                walk.leave(folder)
            yield from candidates_in(folder, place.whose)


def judged(candidate: Candidate, offering: Offering, entries: dict[str, object]) -> Found:
    """A candidate looked into; the lines that would offer it are added to `entries`."""
    examined = examine(candidate)
    source = candidate.source or FolderSource(str(candidate.path))
    offered = offering.offered_as(candidate.source, candidate.path)
    entry: dict[str, object] = {}
    if examined.loads and not offered:
        entry = offering.entry(candidate.title, source)
        if not entry:
            note = "Its path holds control characters: rename it to offer it in models.yaml."
            examined = msgspec.structs.replace(examined, notes=(*examined.notes, note))
    entries |= entry
    return Found(
        title=candidate.title,
        place=candidate.place,
        offered_as=offered,
        entry=written(entry),
        source=source if entry or offered else None,
        **{name: getattr(examined, name) for name in Examined.__struct_fields__},
    )


def _resolved(path: Path) -> Path:
    """The path with links resolved, as far as it can be."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # RuntimeError: links in a circle, before Python 3.13
        return path


def _is_there(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except OSError:
        return True  # the walk tells why it cannot be read
