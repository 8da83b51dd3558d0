"""Models in Ollama's store: a manifest by name, and the GGUF file as a blob."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from app.library.entries import FolderSource
from app.library.json_text import decode
from app.library.scan_candidates import Candidate
from app.library.scan_walk import Folder, Walk

_MODEL = "application/vnd.ollama.image.model"
_DIGEST = re.compile(r"^sha256[:-]([0-9a-f]{64})$")
_LARGEST_MANIFEST = 1 << 20
_DEEPEST = 4
"""Host, namespace and name below `manifests`, and one to spare."""


class _Layer(msgspec.Struct):
    mediaType: str = ""  # Ollama's own name
    digest: str = ""


class _Manifest(msgspec.Struct):
    layers: list[_Layer] = []


def is_store(folder: Folder) -> bool:
    """Whether a folder is a store of Ollama's."""
    return {"manifests", "blobs"} <= set(folder.folders)


def store_candidates(store: Path, place: str, walk: Walk) -> Iterator[Candidate]:
    """Every model that a manifest of the store names."""
    root = store / "manifests"
    for folder in walk.below(root, deepest=_DEEPEST):
        for name in folder.files:
            if not name.startswith("."):
                parts = (folder.path / name).relative_to(root).parts
                yield _candidate(store, folder.path / name, place, title=_title(parts))


def _title(parts: tuple[str, ...]) -> str:
    """As Ollama itself names the model: its own registry and library go without saying."""
    kept = parts[1:] if parts[0] == "registry.ollama.ai" else parts
    kept = kept[1:] if kept[:1] == ("library",) and len(kept) > 2 else kept
    return f"{'/'.join(kept[:-1])}:{kept[-1]}" if len(kept) > 1 else "/".join(parts)


def _candidate(store: Path, manifest: Path, place: str, *, title: str) -> Candidate:
    """What a manifest names."""

    def refused(reason: str, remedy: str) -> Candidate:
        return Candidate(
            title=title, place=place, path=manifest, kind="other", reason=reason, remedy=remedy
        )

    again = f"Get it again: `ollama pull {title}`."
    try:
        with manifest.open("rb") as stream:
            text = stream.read(_LARGEST_MANIFEST)
        layers = decode(text, _Manifest).layers
    except OSError as error:
        return refused(f"Its manifest cannot be read: {error.strerror}.", "Check the file.")
    except msgspec.DecodeError as error:
        return refused(f"Its manifest is broken: {error}.", again)
    digests = [layer.digest for layer in layers if layer.mediaType == _MODEL]
    if not digests:
        return refused("Its manifest names no GGUF file.", "Choose a model that is on this disk.")
    digest = _DIGEST.match(digests[0])
    if digest is None:
        return refused("Its manifest names a file in no form that Ollama writes.", again)
    blob = store / "blobs" / f"sha256-{digest[1]}"
    if not blob.is_file():
        unfinished = any(blob.parent.glob(f"{blob.name}-partial*"))
        return refused("Its download is unfinished." if unfinished else "Its file is gone.", again)
    return Candidate(
        title=title, place=place, path=blob, kind="GGUF file", source=FolderSource(str(blob))
    )
