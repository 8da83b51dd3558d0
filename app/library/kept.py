"""What is kept of models on disk, and how it is removed; never what is a person's own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from app import files
from app.library.catalogue import Catalogue
from app.library.converted import plain_name
from app.library.entries import FolderSource, HubSource, ModelEntry, ResourceSource, WheelSource
from app.library.hub_cache import find_snapshot, repository_folder
from app.library.hub_removal import (
    CachedSnapshot,
    removable_snapshot,
    remove_snapshot,
    unfinished_downloads,
)
from app.library.scan_walk import size_of
from app.library.sources import conversion_of
from app.library.wheel import unpacked_member
from app.run.problems import Problem

_KEY = "[0-9a-f]{12}"


class Kept(msgspec.Struct, frozen=True):
    """What is kept for a model, and what is said of what will be left alone."""

    folders: tuple[Path, ...]
    """Made by Foretoken."""
    left: tuple[str, ...] = ()
    snapshot: CachedSnapshot | None = None
    """In the Hub's cache, which other programs share."""
    unfinished: tuple[Path, ...] = ()
    """Files there whose download was stopped."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """All that would be removed."""
        shared = (self.snapshot.path,) if self.snapshot else ()
        return (*self.folders, *shared, *self.unfinished)

    @property
    def caution(self) -> str:
        """What to know before it is removed; empty where there is nothing."""
        if self.snapshot is None:
            return ""
        return f"{self.snapshot.path} lies in the cache of the Hub, which other programs use too."

    @property
    def size(self) -> int:
        """Bytes that removing it would free."""
        shared = self.snapshot.size if self.snapshot else 0
        return sum(map(tree_bytes, self.folders)) + shared + sum(map(size_of, self.unfinished))


def converted_root() -> Path:
    """The folder of all conversions."""
    return files.cache_folder() / "converted"


def kept_of(catalogue: Catalogue, name: str) -> Kept:
    """What is kept for a model, of the catalogue or of an earlier one.

    Raises Problem for a name that no model has, and nothing is kept by.
    """
    entry = next((model for model in catalogue.models if model.name == name), None)
    folders = _conversions(catalogue, name)
    if entry is None:
        if not folders:
            catalogue.model(name)
        return Kept(tuple(folders))
    left: list[str] = []
    if isinstance(entry.source, WheelSource):
        member = unpacked_member(entry.source).parent
        also = [other.name for other in catalogue.models if _unpacked(other) == member]
        if len(also) > 1:
            names = ", ".join(other for other in also if other != name)
            left.append(f"{member} is used for {names} too, and is left as it is.")
        elif member.is_dir():
            folders.append(member)
    elif isinstance(entry.source, HubSource):
        return _of_hub(catalogue, entry, entry.source, tuple(folders))
    else:
        left += _not_ours(entry)
    return Kept(tuple(folders), tuple(left))


def never_removed(entry: ModelEntry) -> str:
    """Why nothing of a model can ever be removed; empty where something can be kept of it."""
    shipped = isinstance(entry.source, ResourceSource)
    return f"{entry.title} is a part of the program." if shipped else ""


def hub_bytes(catalogue: Catalogue) -> int:
    """Bytes that the Hub's cache holds of the repositories that the catalogue names."""
    sources = [model.source for model in catalogue.models]
    repos = {source.repo for source in sources if isinstance(source, HubSource)}
    return sum(tree_bytes(repository_folder(repo)) for repo in repos)


def remove(kept: Kept) -> None:
    """Removes it all. Raises Problem if a part is being made just now, or cannot be removed."""
    for folder in kept.folders:
        lock = FileLock(folder.parent / f"{folder.name}.lock")
        try:
            with lock.acquire(timeout=0):
                _remove(folder)
        except Timeout as error:
            raise Problem(
                f"{folder} is being made just now.", "Try again when that is done."
            ) from error
        except OSError as error:
            raise Problem(
                f"{folder} could not be removed: {error.strerror or error}.",
                "Close what uses the model (the window of Foretoken, a run), and try again.",
            ) from error
    if kept.snapshot is not None:
        remove_snapshot(kept.snapshot)
    for path in kept.unfinished:
        path.unlink(missing_ok=True)


def without_entry(catalogue: Catalogue) -> tuple[Path, ...]:
    """Conversions that no model of the catalogue would use."""
    used = {conversion_of(entry) for entry in catalogue.models}
    return tuple(path for path in _conversion_folders() if path not in used)


def tree_bytes(folder: Path) -> int:
    """Bytes of all files below a folder, links not followed; what cannot be read counts nothing."""
    total = 0
    try:
        for path in folder.rglob("*"):
            try:
                total += path.lstat().st_size if path.is_file() or path.is_symlink() else 0
            except OSError:
                continue
    except OSError:
        return total
    return total


def _conversions(catalogue: Catalogue, name: str) -> list[Path]:
    """The conversions made under a name: all, but those of models that are called nearly so."""
    pattern = re.compile(f"{re.escape(plain_name(name))}-{_KEY}")
    others = [model for model in catalogue.models if model.name != name]
    kept = {conversion_of(other) for other in others}
    return [
        path for path in _conversion_folders() if pattern.fullmatch(path.name) and path not in kept
    ]


def _conversion_folders() -> list[Path]:
    """Every conversion that is there."""
    ends = re.compile(f".+-{_KEY}")
    try:
        found = sorted(path for path in converted_root().iterdir() if ends.fullmatch(path.name))
        return [path for path in found if path.is_dir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Problem(
            f"{converted_root()} cannot be read: {error.strerror or error}.",
            "Check that you may read it.",
        ) from error


def _unpacked(entry: ModelEntry) -> Path | None:
    return unpacked_member(entry.source).parent if isinstance(entry.source, WheelSource) else None


def _of_hub(
    catalogue: Catalogue, entry: ModelEntry, source: HubSource, folders: tuple[Path, ...]
) -> Kept:
    """What the Hub's cache holds of a model, unless another model needs it."""
    others = [
        (other.name, other.source)
        for other in catalogue.models
        if isinstance(other.source, HubSource) and other.name != entry.name
    ]
    here = find_snapshot(source)
    also = [name for name, other in others if here is not None and find_snapshot(other) == here]
    if also:
        return Kept(folders, (f"{here} is used for {', '.join(also)} too, and is left as it is.",))
    snapshot = removable_snapshot(source)
    shared = any(other.repo == source.repo for _, other in others)
    unfinished = () if shared else unfinished_downloads(source.repo)
    left: tuple[str, ...] = ()
    if here is not None and snapshot is None:
        left = (f"{here} is damaged, and is left as it is: delete it yourself.",)
    return Kept(folders, left, snapshot, unfinished)


def _not_ours(entry: ModelEntry) -> list[str]:
    """What a model's source is, and how a person removes it."""
    source = entry.source
    if isinstance(source, FolderSource):
        return [f"{source.path} is your own: delete it yourself if you don't need it any more."]
    if isinstance(source, ResourceSource):
        return [f"{files.resource(source.path)} is a part of the program."]
    return []


def _remove(folder: Path) -> None:
    """Takes a folder away; of a link, the link alone."""
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder)
