"""What may be a model among the files of a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

import msgspec

from app.library.eagle_folder import is_eagle
from app.library.entries import FolderSource, HubSource
from app.library.head_folder import DESCRIPTION
from app.library.scan_walk import Folder

Kind = Literal["safetensors folder", "GGUF file", "draft head", "other"]
_PART = re.compile(r"^(?P<stem>.+)-(?P<number>\d{5})-of-(?P<parts>\d{5})\.gguf$", re.IGNORECASE)
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "model.safetensors.index.json")
_BESIDE = ("tokenizer*", "generation_config.json", "*.incomplete", "*.crdownload", "*.part")
"""What tells the config.json of a model that has no weights yet from that of another program."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """Something that may be a model, before it is looked into."""

    title: str
    place: str
    """Whose place it lies in."""
    path: Path
    kind: Kind
    source: FolderSource | HubSource | None = None
    """How a catalogue names it; None: by its path."""
    notes: tuple[str, ...] = ()
    reason: str = ""
    """Why it cannot be loaded, where that is known already."""
    remedy: str = ""
    files: tuple[Path, ...] = ()
    """All parts of a split file."""


def candidates_in(folder: Folder, place: str, *, title: str = "") -> Iterator[Candidate]:
    """The models that lie directly in a folder; `title` is used for a folder of weights."""
    title = title or folder.path.name or str(folder.path)
    if DESCRIPTION in folder.files or ("config.json" in folder.files and is_eagle(folder.path)):
        yield Candidate(title=title, place=place, path=folder.path, kind="draft head")
    elif "model_index.json" in folder.files:
        yield Candidate(
            title=title,
            place=place,
            path=folder.path,
            kind="other",
            reason="It is a pipeline that makes pictures or sound.",
            remedy="Choose a language model.",
        )
    elif "adapter_config.json" in folder.files and "config.json" not in folder.files:
        yield Candidate(
            title=title,
            place=place,
            path=folder.path,
            kind="other",
            reason="It is an adapter, which changes another model.",
            remedy="Merge it into its model (`merge_and_unload` of peft) and use the result.",
        )
    elif _is_weights_folder(folder):
        yield Candidate(title=title, place=place, path=folder.path, kind="safetensors folder")
    yield from _ggufs(folder, place)


def _is_weights_folder(folder: Folder) -> bool:
    has_config = "config.json" in folder.files
    if any(fnmatch(name, pattern) for name in folder.files for pattern in _WEIGHTS):
        return has_config or not any(name.endswith(".gguf") for name in folder.files)
    beside = any(fnmatch(name, pattern) for name in folder.files for pattern in _BESIDE)
    holds_gguf = any(name.lower().endswith(".gguf") for name in folder.files)
    return has_config and beside and not holds_gguf


def _ggufs(folder: Folder, place: str) -> Iterator[Candidate]:
    """The GGUF files of a folder, the parts of a split one as one."""
    for name in folder.files:
        path = folder.path / name
        part = _PART.match(name)
        if part is None:
            if name.lower().endswith(".gguf"):
                yield Candidate(title=path.stem, place=place, path=path, kind="GGUF file")
        elif int(part["number"]) == 1:
            parts = tuple(
                folder.path / other
                for other in folder.files
                if (also := _PART.match(other)) and also["stem"] == part["stem"]
            )
            yield Candidate(
                title=part["stem"],
                place=place,
                path=path,
                kind="GGUF file",
                files=parts,
                notes=(f"{len(parts)} of its {int(part['parts'])} parts are here.",),
            )
