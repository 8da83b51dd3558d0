"""A walk through folders that always ends: bounded, safe from loops, told where it could not go."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import msgspec

from app.library.whole_folder import Pause

DEEPEST = 8
"""Folders below the one that was asked for."""
MOST_FOLDERS = 20_000
MOST_FILES = 200_000
_PASSED_BY = {"__pycache__", "node_modules", "site-packages"}


class Folder(msgspec.Struct, frozen=True):
    """A folder on the way: the names of its files and of its folders, sorted."""

    path: Path
    files: tuple[str, ...]
    """Dangling links too."""
    folders: tuple[str, ...]


class Walk:
    """One walk, or several that share their bounds; `troubles` grows with what it could not see."""

    def __init__(self, pause: Pause, *, without: tuple[Path, ...] = ()) -> None:
        """`without`: folders that are passed by."""
        self.troubles: list[str] = []
        self._pause = pause
        self._seen = {_identity(path) for path in without if path.exists()}
        self._folders = self._files = 0
        self._left: set[Path] = set()

    def below(self, root: Path, *, deepest: int = DEEPEST) -> Iterator[Folder]:
        """The folder and those below it, nearest first; links to folders are followed once."""
        waiting = deque([(root, 0)])
        while waiting:
            self._pause()
            path, depth = waiting.popleft()
            if self._folders >= MOST_FOLDERS or self._files >= MOST_FILES:
                self._trouble(
                    f"Stopped in {path}: there are more than {MOST_FOLDERS:,} folders or "
                    f"{MOST_FILES:,} files. Name a folder closer to the models."
                )
                return
            folder = self._listed(path)
            if folder is None:
                continue
            yield folder
            if folder.path in self._left:
                continue
            onward = [name for name in folder.folders if not _passed_by(name)]
            if depth == DEEPEST and onward:
                self._trouble(f"{path} holds further folders, too deep to be looked into.")
            elif depth < deepest:
                waiting.extend((path / name, depth + 1) for name in onward)

    def leave(self, folder: Folder) -> None:
        """Keeps the walk from going below a folder that it is at."""
        self._left.add(folder.path)

    def _listed(self, path: Path) -> Folder | None:
        """What a folder holds; None if it was seen before or cannot be read."""
        files, folders = [], []
        try:
            identity = _identity(path)
            if identity in self._seen:
                return None
            self._seen.add(identity)
            with os.scandir(path) as entries:
                for entry in entries:
                    self._files += 1
                    kind = _kind(entry)
                    if kind == "folder":
                        folders.append(entry.name)
                    elif kind == "file":
                        files.append(entry.name)
        except OSError as error:
            self._trouble(f"{path} cannot be read: {error.strerror or error}.")
            return None
        self._folders += 1
        return Folder(path, tuple(sorted(files)), tuple(sorted(folders)))

    def _trouble(self, said: str) -> None:
        if said not in self.troubles:
            self.troubles.append(said)


def size_of(path: Path) -> int:
    """Bytes of a file, or of what a link leads to; 0 if it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _identity(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_dev, facts.st_ino


def _kind(entry: os.DirEntry[str]) -> str:
    """`folder`, `file`, or empty for what would hang whoever opened it (pipes, devices).

    A link that leads nowhere, or round in a circle, is a file: its reader will tell.
    """
    try:
        if entry.is_dir():
            return "folder"
        if entry.is_file() or (entry.is_symlink() and not os.path.exists(entry.path)):
            return "file"
    except OSError:
        return "file" if entry.is_symlink() else ""
    return ""


def _passed_by(name: str) -> bool:
    return name.startswith((".", "datasets--", "spaces--")) or name in _PASSED_BY
