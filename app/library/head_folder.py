"""A draft head as it lies in a folder: its description, its vocabulary and its weights.

`head.json` says what the head is and what target it was made for; `head.safetensors` holds what was
trained, by the names of `DraftHead`'s parts, and `draft_to_target`: the id of each token that it
can guess, ascending. Embeddings and output rows are the target's own and are not in the files.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

from app.library.json_text import decode
from app.library.preflight import FolderFacts
from app.library.weight_files import WeightFile, read_header
from app.run.problems import Problem

DESCRIPTION = "head.json"
WEIGHTS = "head.safetensors"

_FINGERPRINTED = 1 << 20
"""Bytes of each weight file that a fingerprint is made of, its header among them."""


class HeadShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes of a head; all but the vocabulary are its target's."""

    hidden: int
    intermediate: int
    heads: int
    shared_heads: int
    """Heads of keys and values."""
    head_size: int
    norm_epsilon: float
    biased: bool
    """Whether queries, keys and values have biases (Qwen2)."""
    normed: bool
    """Whether queries and keys have norms (Qwen3)."""
    vocabulary: int
    """Tokens that it can guess."""


class MadeFor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The target that a head learned from."""

    title: str
    fingerprint: str
    """Of its weight files, as `fingerprint` takes it."""
    vocabulary: int
    """Rows of its output layer."""


class HeadDescription(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `head.json` holds."""

    format: Literal["foretoken draft head 1"]
    shape: HeadShape
    target: MadeFor
    trained: str
    """How it was trained, in a sentence."""


class HeadFacts(msgspec.Struct, frozen=True):
    """A head's folder that has passed every check made before loading."""

    folder: Path
    description: HeadDescription
    weights: WeightFile


def is_head(folder: Path) -> bool:
    """Whether a folder holds a draft head."""
    return (folder / DESCRIPTION).is_file()


def check_head(folder: Path) -> HeadFacts:
    """Reads a head's description and the header of its weights. Raises Problem if it is broken."""
    file = folder / DESCRIPTION
    try:
        description = decode(file.read_bytes(), HeadDescription)
    except OSError as error:
        raise Problem(
            f"There is no draft head in {folder}: {file.name} cannot be read ({error.strerror}).",
            "Choose the folder that `foretoken train` made, `head` within its --out.",
        ) from None
    except msgspec.DecodeError as error:
        raise Problem(f"{file} describes no draft head: {error}.", "Get it again.") from None
    return HeadFacts(folder, description, read_header(folder / WEIGHTS))


def refuse_unfit(head: HeadFacts, target: FolderFacts) -> str:
    """A warning if the head was made for other weights; empty if for these.

    Raises Problem if it cannot work with this target at all.
    """
    made, shape = head.description.target, head.description.shape
    fits = shape.hidden == target.hidden and made.vocabulary == target.vocabulary
    if not fits:
        raise Problem(
            f"The draft head in {head.folder} was made for {made.title}: features of "
            f"{shape.hidden} numbers and {made.vocabulary} tokens; this target has "
            f"{target.hidden} and {target.vocabulary}.",
            "Choose its own target, or train a head for this one (`foretoken train`).",
        )
    if made.fingerprint == fingerprint(target):
        return ""
    return (
        f"The draft head was trained for other weights ({made.title}): the text stays right, but "
        "fewer guesses may be kept."
    )


def fingerprint(target: FolderFacts) -> str:
    """A SHA-256 over the size and the beginning of every weight file, header included."""
    digest = hashlib.sha256()
    try:
        for file in target.weight_files:
            digest.update(str(file.stat().st_size).encode())
            with file.open("rb") as stream:
                digest.update(stream.read(_FINGERPRINTED))
    except OSError as error:
        raise Problem(
            f"The weights in {target.folder} cannot be read: {error}.", "Check the drive."
        ) from None
    return digest.hexdigest()
