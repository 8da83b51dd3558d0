"""A model's snapshot out of the Hub's cache, by its own library; nothing else in the cache."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout
from huggingface_hub import CacheNotFound, HFCacheInfo, scan_cache_dir

from app.library.entries import HubSource
from app.library.hub_cache import find_snapshot, repository_folder
from app.library.scan_places import hub_cache
from app.run.problems import Problem

_CONTENT = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})(\.incomplete)?")
"""What a fetch of ours leaves if it is stopped: other programs call theirs otherwise."""


class CachedSnapshot(msgspec.Struct, frozen=True):
    """A snapshot that the Hub's own library can remove."""

    repo: str
    path: Path
    size: int
    """Bytes that are freed: what other snapshots share stays."""


def removable_snapshot(source: HubSource) -> CachedSnapshot | None:
    """The snapshot of a source; None if there is none, or the cache is too damaged to tell."""
    path = find_snapshot(source)
    if path is None or (info := _scanned(source.repo)) is None:
        return None
    commits = {one.commit_hash for repo in info.repos for one in repo.revisions}
    if path.name not in commits:
        return None
    return CachedSnapshot(source.repo, path, info.delete_revisions(path.name).expected_freed_size)


def remove_snapshot(snapshot: CachedSnapshot) -> None:
    """Removes it, and what no other snapshot uses. Raises Problem if it cannot be removed."""
    info = _scanned(snapshot.repo)
    if info is not None:
        info.delete_revisions(snapshot.path.name).execute()
    if snapshot.path.exists():
        raise Problem(
            f"{snapshot.path} could not be removed.",
            "Close what uses the model (the window of Foretoken, a run), and try again.",
        )


def unfinished_downloads(repo: str) -> tuple[Path, ...]:
    """What stopped fetches have left of a repository: contents, whole or not, that no snapshot
    shows and no program works on just now.
    """
    folder = repository_folder(repo)
    try:
        shown = {
            link.readlink().name for link in (folder / "snapshots").rglob("*") if link.is_symlink()
        }
        found = sorted(
            path
            for path in (folder / "blobs").iterdir()
            if _CONTENT.fullmatch(path.name) and path.name not in shown and not path.is_symlink()
        )
    except OSError:
        return ()
    return tuple(path for path in found if _is_idle(path))


def _is_idle(content: Path) -> bool:
    """Whether nobody holds the lock of a file that may be being fetched."""
    locks = content.parents[2] / ".locks" / content.parents[1].name
    if not locks.is_dir():
        return True
    try:
        with FileLock(locks / f"{content.name.partition('.')[0]}.lock").acquire(timeout=0):
            return True
    except (Timeout, OSError):
        return False


def _scanned(repo: str) -> HFCacheInfo | None:
    """What the library sees of one repository in the cache, and of it alone."""
    try:
        found = scan_cache_dir(hub_cache())
    except (CacheNotFound, ValueError, OSError):
        return None
    folder = repository_folder(repo).resolve()
    only = frozenset(one for one in found.repos if one.repo_path.resolve() == folder)
    return dataclasses.replace(found, repos=only) if only else None
