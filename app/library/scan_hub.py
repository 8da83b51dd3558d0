"""Models in a cache of the Hugging Face Hub: `models--ORG--NAME/{refs,snapshots,blobs}`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from app.library.entries import HubSource
from app.library.scan_candidates import Candidate, candidates_in
from app.library.scan_walk import Folder, Walk, size_of
from app.run.sizes import bytes_in_words

_PREFIX = "models--"
_REPOSITORY = re.compile(r"^[\w.-]+/[\w.-]+$")
_COMMIT = re.compile(r"^[\w-]{1,64}$")
_DEEPEST = 2
"""Folders below a snapshot in which GGUF files are looked for."""


def is_repository(folder: Folder) -> bool:
    """Whether a folder is a repository of models, as the cache keeps one."""
    return "snapshots" in folder.folders and (
        folder.path.name.startswith(_PREFIX) or {"refs", "blobs"} <= set(folder.folders)
    )


def repository_candidates(
    folder: Folder, place: str, walk: Walk, *, by_name: bool
) -> Iterator[Candidate]:
    """The models of one repository, at the snapshots that its refs name; all, if there are none.

    `by_name`: the cache is the one in which a `hub` source is looked for.
    """
    title = folder.path.name.removeprefix(_PREFIX).replace("--", "/")
    snapshots, references, unfinished = _insides(folder, walk)
    named = {commit: ref for ref, commit in references.items() if commit in snapshots}
    lost = [ref for ref, commit in references.items() if commit not in snapshots]
    notes = [f"refs/{ref} names a snapshot that is not here." for ref in lost]
    notes += [unfinished] if unfinished else []
    if older := len(snapshots) - len(named) if named else 0:
        notes.append(f"{older} older snapshots are here too.")
    if not snapshots:
        yield Candidate(
            title=title,
            place=place,
            path=folder.path,
            kind="other",
            reason=" ".join(["No snapshot of it is here.", *notes]),
            remedy="Download it (again).",
        )
    for commit in sorted(named or snapshots):
        reference = named.get(commit, "")
        source = None
        if by_name and reference and _REPOSITORY.match(title):
            source = HubSource(title, reference)
        shown = title if reference in ("", "main") else f"{title} ({reference})"
        for one in _snapshot_candidates(snapshots[commit], place, walk, title=shown):
            yield msgspec.structs.replace(
                one,
                source=source if one.kind == "safetensors folder" else None,
                notes=(*one.notes, *notes),
            )


def _snapshot_candidates(
    snapshot: Path, place: str, walk: Walk, *, title: str
) -> Iterator[Candidate]:
    """The weights of a snapshot itself, and the GGUF files of it and of its folders."""
    for folder in walk.below(snapshot, deepest=_DEEPEST):
        for one in candidates_in(folder, place, title=title):
            if folder.path == snapshot or one.kind == "GGUF file":
                yield one


def _insides(folder: Folder, walk: Walk) -> tuple[dict[str, Path], dict[str, str], str]:
    """Snapshots by their commits, commits by their refs, and what is said of unfinished blobs."""
    snapshots: dict[str, Path] = {}
    references: dict[str, str] = {}
    for part in walk.below(folder.path / "snapshots", deepest=0):
        snapshots |= {name: part.path / name for name in part.folders}
    if "refs" in folder.folders:
        root = folder.path / "refs"
        for part in walk.below(root, deepest=2):
            for name in part.files:
                if (commit := _commit(part.path / name)) is not None:
                    references[(part.path / name).relative_to(root).as_posix()] = commit
    blobs: list[Path] = []
    if "blobs" in folder.folders:
        for part in walk.below(folder.path / "blobs", deepest=0):
            blobs += [part.path / name for name in part.files if name.endswith(".incomplete")]
    size = sum(map(size_of, blobs))
    said = (
        f"{len(blobs)} downloads are unfinished ({bytes_in_words(size)} so far)." if blobs else ""
    )
    return snapshots, references, said


def _commit(file: Path) -> str | None:
    """The commit that a ref holds; None for a file that holds anything else."""
    try:
        with file.open("rb") as stream:
            said = stream.read(100).decode("ascii", "replace").strip()
    except OSError:
        return None
    return said if _COMMIT.match(said) else None
