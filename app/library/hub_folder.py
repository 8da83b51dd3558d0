"""A folder of the Hub's cache that a person has chosen: the snapshot that it stands for.

Chosen may be the cache itself, a repository in it (`models--ORG--NAME`), or a folder inside that.
"""

from __future__ import annotations

import re
from pathlib import Path

from app.run.problems import Problem

_PREFIX = "models--"
_INSIDE = ("snapshots", "refs", "blobs")
_COMMIT = re.compile(r"[\w-]{1,64}")
_MOST = 8
"""Names that are told of."""


def meant_in_cache(path: Path) -> Path:
    """The snapshot that a folder stands for; any other folder itself.

    Raises Problem where there is none, or where there are several to choose from. Raises OSError.
    """
    if path.name in _INSIDE and path.parent.name.startswith(_PREFIX):
        path = path.parent
    if (path / "snapshots").is_dir() or (
        path.name.startswith(_PREFIX) and (path / "blobs").is_dir()
    ):
        return _snapshot(path)
    if (path / "config.json").exists():
        return path
    for cache in (path, path / "hub"):
        repositories = _repositories(cache)
        if len(repositories) == 1:
            return _snapshot(repositories[0])
        if repositories:
            raise Problem(
                f"{path} is a whole cache of the Hub, with {len(repositories)} models.",
                f"Choose one of its folders: {_listed(repositories)}.",
            )
    return path


def _repositories(cache: Path) -> list[Path]:
    """The folders of models in a cache."""
    return sorted(path for path in cache.glob(f"{_PREFIX}*") if path.is_dir())


def _snapshot(repository: Path) -> Path:
    """The snapshot that `main` names, or the only one."""
    main = repository / "refs" / "main"
    if main.is_file():
        commit = main.read_text(encoding="utf-8", errors="replace").strip()
        snapshot = repository / "snapshots" / commit
        if _COMMIT.fullmatch(commit) and snapshot.is_dir():
            return snapshot
    snapshots = repository / "snapshots"
    found = sorted(path for path in snapshots.glob("*") if path.is_dir())
    if len(found) == 1:
        return found[0]
    if not found:
        raise Problem(
            f"{repository} is a cache of the Hub without a snapshot: its download was stopped, or "
            "it was copied in part.",
            "Copy the whole folder again, links and all, or download the model again.",
        )
    raise Problem(
        f"{repository} is a cache of the Hub with {len(found)} snapshots.",
        f"Name one: {_listed(found)}.",
    )


def _listed(paths: list[Path]) -> str:
    more = f" and {len(paths) - _MOST} more" if len(paths) > _MOST else ""
    return ", ".join(map(str, paths[:_MOST])) + more
