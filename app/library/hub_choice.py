"""Which files of a repository make a model: never a pickle, and no code."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from app.library.head_folder import DESCRIPTION as HEAD
from app.library.head_folder import WEIGHTS as HEAD_WEIGHTS
from app.library.hub_listing import Listing, RemoteFile
from app.library.json_text import decode
from app.library.local_folder import refuse_part
from app.library.pickled import conversion_command
from app.run.problems import Problem

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
_BESIDE = ("*.json", "tokenizer.model", "*.jinja", "merges.txt", "vocab.txt")
"""What goes along with weights, of the files directly in the repository."""
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_PART = re.compile(r".+-\d{5}-of-\d{5}\.gguf", re.IGNORECASE)


class Choice(msgspec.Struct, frozen=True):
    """The files to fetch."""

    files: tuple[RemoteFile, ...]
    index: RemoteFile | None = None
    """One of the files, which names the shards that are to be fetched too."""


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


def choose(listing: Listing, file: str | None) -> Choice:
    """What to fetch: a model, or its GGUF file of this name. Raises Problem if that cannot be."""
    if file is not None:
        return Choice((_gguf(listing, file),))
    beside = tuple(one for one in listing.files if _is_beside(one.name))
    if single := listing.file(SINGLE):
        return Choice((*(one for one in beside if one.name != INDEX), single))
    if index := listing.file(INDEX):
        return Choice(beside, index)
    if listing.file(HEAD) and (weights := listing.file(HEAD_WEIGHTS)):
        return Choice((*beside, weights))
    return Choice((_only_gguf(listing),))


def shards(listing: Listing, index: bytes) -> tuple[RemoteFile, ...]:
    """The weight files that an index names. Raises Problem if the repository lacks one."""
    try:
        names = sorted(set(decode(index, _Index).weight_map.values()))
    except msgspec.DecodeError as error:
        raise Problem(
            f"{INDEX} of {listing.repo} is not a valid index: {error}.", "Choose another revision."
        ) from error
    found = [listing.file(name) for name in names]
    lost = [name for name, file in zip(names, found, strict=True) if file is None]
    if lost or not all(name.endswith(".safetensors") for name in names):
        raise Problem(
            f"{INDEX} of {listing.repo} names files that it does not hold as safetensors: "
            f"{_listed(lost or names)}.",
            "The repository is not whole: choose another revision, or another repository.",
        )
    return tuple(file for file in found if file is not None)


def _is_beside(name: str) -> bool:
    return "/" not in name and any(fnmatchcase(name, pattern) for pattern in _BESIDE)


def _gguf(listing: Listing, name: str) -> RemoteFile:
    """The GGUF file of this name."""
    refuse_part(Path(name))
    found = listing.file(name)
    if found is None:
        raise Problem(
            f"{listing.repo} has no file {name}.",
            f"Its GGUF files: {_listed(_ggufs(listing)) or 'none'}.",
        )
    return found


def _only_gguf(listing: Listing) -> RemoteFile:
    """The one GGUF file of a repository without safetensors."""
    ggufs = _ggufs(listing)
    if len(ggufs) == 1:
        return _gguf(listing, ggufs[0])
    if ggufs:
        raise Problem(
            f"{listing.repo} holds several GGUF files: {_listed(ggufs)}.",
            "Name one of them as `file:` below `hub:`; parts of a split file are not read.",
        )
    raise _no_weights(listing)


def _ggufs(listing: Listing) -> list[str]:
    names = sorted(one.name for one in listing.files if one.name.lower().endswith(".gguf"))
    whole = [name for name in names if not _PART.fullmatch(name)]
    return whole or names


def _no_weights(listing: Listing) -> Problem:
    """Why nothing of a repository can be used, and the way out."""
    here = [one.name for one in listing.files if "/" not in one.name]
    pickled = [name for name in here if name.endswith(_PICKLED)]
    if pickled:
        command = conversion_command(Path("FOLDER"))
        return Problem(
            f"{listing.repo} holds its weights only as pickle ({_listed(pickled)}), which can run "
            "code: nothing was fetched.",
            "Choose a version with .safetensors files. Or run `hf download "
            f"{listing.repo}`, then, with the folder that it prints for FOLDER, this command, "
            f"which reads tensors and nothing else: {command}",
        )
    other = [name for name in here if name.endswith(".safetensors")]
    more = f" It has {_listed(other)}, under a name that no loader takes." if other else ""
    return Problem(
        f"{listing.repo} holds no weights of a language model: no {SINGLE}, no {INDEX} and no "
        f"GGUF file.{more}",
        "Choose the repository of a whole model in the format of transformers, or of its GGUF.",
    )


def _listed(names: list[str]) -> str:
    """Up to eight names, and how many more there are."""
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(names[:8]) + more
