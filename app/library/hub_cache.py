"""The Hub's cache, by its documented layout: `models--ORG--NAME/{refs,snapshots,blobs}`.

Whatever any program has fetched is found; what is fetched here, any program finds.
Source: huggingface_hub's guide "Understand caching".
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path

from filelock import FileLock
from huggingface_hub import constants, snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError

from app.library.entries import HubSource
from app.library.hub_listing import Listing, RemoteFile
from app.library.local_folder import find_on_disk
from app.library.scan_places import hub_cache
from app.run.problems import Problem

_UNFINISHED = ".incomplete"


def repository_folder(repo: str, *, cache: Path | None = None) -> Path:
    """Where a cache keeps a repository of models, there or not."""
    return (cache or hub_cache()) / f"models--{repo.replace('/', '--')}"


def find_snapshot(source: HubSource) -> Path | None:
    """The snapshot of a repository that was fetched before, whole or not; asks nobody."""
    try:
        # No patterns: whether all is there that is needed, the checks of a model folder tell.
        folder: str = snapshot_download(
            source.repo,
            revision=source.revision,
            cache_dir=hub_cache(),
            allow_patterns=[],
            local_files_only=True,
        )
    except (LocalEntryNotFoundError, OSError, ValueError):
        return None
    return Path(folder)


def find_in_cache(source: HubSource) -> Path | None:
    """The folder, or the GGUF file, of a model that was fetched before; asks nobody."""
    snapshot = find_snapshot(source)
    if snapshot is None:
        return None
    if source.file is not None:
        file = snapshot / source.file
        return file if file.is_file() else None
    try:
        return find_on_disk(str(snapshot))
    except Problem:
        return None


class CachedRepository:
    """One repository in a cache: where its files go, and how they come to be a snapshot."""

    def __init__(self, cache: Path, listing: Listing) -> None:
        self._folder = repository_folder(listing.repo, cache=cache)
        self._locks = cache / ".locks" / self._folder.name
        self.blobs = self._folder / "blobs"
        self.snapshot = self._folder / "snapshots" / listing.commit

    def make(self) -> None:
        """Makes the folders that files go to."""
        # Without a folder of snapshots, other programs take the repository for damaged.
        for folder in (self.blobs, self.snapshot.parent, self._locks):
            folder.mkdir(parents=True, exist_ok=True)

    def blob(self, file: RemoteFile) -> Path:
        """Where the content of a file lies once it is whole."""
        return self.blobs / file.digest

    def partial(self, file: RemoteFile) -> Path:
        """Where it lies until then."""
        return self.blobs / f"{file.digest}{_UNFINISHED}"

    def lock(self, file: RemoteFile) -> FileLock:
        """The lock by which the Hub's own library keeps two programs from fetching a file."""
        return FileLock(self._locks / f"{file.digest}.lock")

    def pointer(self, file: RemoteFile) -> Path:
        """Where a file lies in the snapshot."""
        return self.snapshot.joinpath(*file.name.split("/"))

    def has(self, file: RemoteFile) -> bool:
        """Whether the whole content of a file is there."""
        return self.pointer(file).is_file() or self.blob(file).is_file()

    def missing(self, file: RemoteFile) -> int:
        """Bytes of a file that have not come yet."""
        if self.has(file):
            return 0
        try:
            came = self.partial(file).stat().st_size
        except FileNotFoundError:
            return file.size
        return file.size - came if came <= file.size else file.size

    def read(self, file: RemoteFile) -> bytes:
        """The content of a whole file."""
        pointer = self.pointer(file)
        return (pointer if pointer.is_file() else self.blob(file)).read_bytes()

    def show(self, files: Iterable[RemoteFile], *, revision: str) -> None:
        """Makes these whole files a snapshot, the last one last, and the revision's ref name it."""
        waiting = list(files)
        while waiting:
            file = waiting.pop(0)
            again = any(other.digest == file.digest for other in waiting)
            if not self.pointer(file).is_file():
                self._point(file, keep=again)
        self._refer(revision)

    def _point(self, file: RemoteFile, *, keep: bool) -> None:
        """Links a file into the snapshot; where the disk knows no links, moves or copies it."""
        pointer, blob = self.pointer(file), self.blob(file)
        pointer.parent.mkdir(parents=True, exist_ok=True)
        pointer.unlink(missing_ok=True)  # a link that leads nowhere
        try:
            if constants.HF_HUB_DISABLE_SYMLINKS:
                raise OSError("links are switched off")
            pointer.symlink_to(os.path.relpath(blob, pointer.parent))
        except OSError:
            if keep:
                shutil.copyfile(blob, pointer)
            else:
                os.replace(blob, pointer)

    def _refer(self, revision: str) -> None:
        """Writes the ref, all at once; a commit needs none."""
        commit = self.snapshot.name
        if revision == commit:
            return
        ref = self._folder.joinpath("refs", *revision.split("/"))
        ref.parent.mkdir(parents=True, exist_ok=True)
        new = ref.with_name(f"{ref.name}.{uuid.uuid4().hex[:8]}.tmp")
        new.write_text(commit, encoding="ascii")
        os.replace(new, ref)
