"""Whether the files of a model are byte for byte those of the Hub; only on a word, as it reads all.

The cache of the Hub names a file by its hash, so that a link tells what it has to be. Where a cache
was copied without its links, the Hub is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]  # re-exported

from app.library.catalogue import Catalogue
from app.library.checking import Check
from app.library.content_hash import content_digest
from app.library.entries import HubSource
from app.library.hub_access import hub_access
from app.library.hub_cache import find_in_cache
from app.library.hub_listing import list_repository
from app.library.whole_folder import Pause
from app.run.events import Progress
from app.run.problems import Problem

_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SNAPSHOT = re.compile(r"models--(?P<owner>[\w.-]+?)--(?P<name>[\w.-]+)")


class HashCheck(msgspec.Struct, frozen=True):
    """The names of files, by what their hashes say."""

    right: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """What they have to be is not known: not from the Hub, or it cannot be asked now."""


def files_of(catalogue: Catalogue, check: Check) -> dict[str, Path]:
    """By name, where the files of the models that were checked lie; of the Hub's, as they came."""
    sources = {model.name: model.source for model in catalogue.models}
    places = {}
    for one in check.models:
        source = sources.get(one.name)
        came = find_in_cache(source) if isinstance(source, HubSource) else None
        place = came or (one.model.path if one.model is not None else None)
        if place is not None:
            places[one.name] = place
    return places


def check_hashes(place: Path, *, report: Callable[[Progress], None], pause: Pause) -> HashCheck:
    """Reads a model's folder, or its GGUF file, and compares. `pause` may raise Cancelled.

    Raises Problem for a file that cannot be read.
    """
    folder = place if place.is_dir() else place.parent
    files = (
        sorted(path for path in place.iterdir() if path.is_file()) if place.is_dir() else [place]
    )
    expected = _expected(folder, files)
    found: dict[str, list[str]] = {"right": [], "wrong": [], "unknown": []}
    for file in files:
        digest = expected.get(file.name)
        if digest is None:
            found["unknown"].append(file.name)
            continue
        report(Progress(f"Checking {file.name}"))
        try:
            is_right = content_digest(file, like=digest, pause=pause) == digest
        except OSError as error:
            said = f"{file} cannot be read: {error.strerror or error}."
            raise Problem(said, "Check the drive that it lies on.") from error
        found["right" if is_right else "wrong"].append(file.name)
    return HashCheck(*(tuple(found[kind]) for kind in HashCheck.__struct_fields__))


def _expected(folder: Path, files: Iterable[Path]) -> dict[str, str]:
    """By name, the hash that a file has to have."""
    named = {
        file.name: target
        for file in files
        if file.is_symlink() and _DIGEST.fullmatch(target := file.readlink().name)
    }
    if all(file.name in named for file in files):
        return named
    return _from_hub(folder) | named


def _from_hub(folder: Path) -> dict[str, str]:
    """What the Hub says of the files of a snapshot; nothing if it cannot be asked."""
    repository = _SNAPSHOT.fullmatch(folder.parent.parent.name)
    if repository is None or len(folder.name) != 40:
        return {}
    source = HubSource(f"{repository['owner']}/{repository['name']}", folder.name)
    try:
        listing = list_repository(source, hub_access())
    except (HTTPError, OSError, Problem):
        return {}
    return {file.name: file.digest for file in listing.files}
