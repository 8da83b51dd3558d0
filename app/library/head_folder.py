"""A draft head as it lies in a folder, in this program's own format or in a published one.

Of its own, `head.json` says what the head is and what target it was made for; `head.safetensors`
holds what was trained, by the names of `DraftHead`'s parts, and `draft_to_target`: the id of each
token that it can guess, ascending. Embeddings and output rows are the target's own and are not in
the files.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

from app.library.eagle_folder import EagleForm, check_eagle, is_eagle
from app.library.eagle_folder import size_of as eagle_size
from app.library.head_size import HeadSize
from app.library.json_text import decode
from app.library.preflight import FolderFacts
from app.library.weight_files import TensorPlace, WeightFile, read_header
from app.run.problems import Problem

DESCRIPTION = "head.json"
WEIGHTS = "head.safetensors"

TARGETS = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
"""Kinds of targets that a head can guess for; their logits are their output layer's answer."""

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

    @property
    def size(self) -> HeadSize:
        """The memory that such a head takes, with its copy of the output rows that it needs."""
        vectors = self.hidden * self.head_size * 2 * (self.heads + self.shared_heads)
        inside = 3 * self.hidden * self.intermediate
        norms = 3 * self.hidden + (2 * self.head_size if self.normed else 0)
        biases = self.head_size * (self.heads + 2 * self.shared_heads) if self.biased else 0
        own = 2 * self.hidden**2 + vectors + inside + norms + biases
        return HeadSize(
            weights=own + self.hidden * self.vocabulary,
            kept=2 * self.shared_heads * self.head_size,
            features=self.hidden,
        )


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
    description: HeadDescription | EagleForm
    files: tuple[WeightFile, ...]

    @property
    def name(self) -> str:
        """What it is called in figures and reports."""
        described = self.description
        if isinstance(described, HeadDescription):
            return f"draft head for {described.target.title}"
        return f"{described.kind.upper()} head for {described.title}"

    @property
    def size(self) -> HeadSize:
        """The memory that it takes."""
        described = self.description
        if isinstance(described, HeadDescription):
            return described.shape.size
        return eagle_size(described, self.files)

    @property
    def stored(self) -> str:
        """How its weights are held in the files."""
        kinds = {place.dtype for place in self.tensors.values()}
        return ", ".join(sorted(kind for kind in kinds if kind.startswith(("F", "BF"))))

    @property
    def tensors(self) -> dict[str, TensorPlace]:
        """What its weight files name."""
        return {name: place for file in self.files for name, place in file.tensors.items()}


def is_head(folder: Path) -> bool:
    """Whether a folder holds a draft head."""
    return is_own_head(folder) or is_eagle(folder)


def is_own_head(folder: Path) -> bool:
    """Whether a folder holds a draft head in this program's own format."""
    return (folder / DESCRIPTION).is_file()


def check_head(folder: Path) -> HeadFacts:
    """Reads what a head says of itself and the headers of its weights. Raises Problem if it is
    broken, or of a kind that cannot be run.
    """
    if not is_own_head(folder) and (folder / "config.json").is_file():
        return HeadFacts(folder, *check_eagle(folder))
    description, file = check_own_head(folder)
    return HeadFacts(folder, description, (file,))


def check_own_head(folder: Path) -> tuple[HeadDescription, WeightFile]:
    """What a head of this program's own says of itself, and the header of its weights.

    Raises Problem if it is broken.
    """
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
    return description, read_header(folder / WEIGHTS)


def refuse_unfit(head: HeadFacts, target: FolderFacts) -> str:
    """A warning if the head was made for other weights; empty if for these, or if none can tell.

    Raises Problem if it cannot work with this target at all.
    """
    if target.model_type not in TARGETS:
        raise no_head_for(target.model_type)
    if isinstance(head.description, EagleForm):
        _refuse_unfit_eagle(head, head.description, target)
        return ""
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


def no_head_for(kind: str) -> Problem:
    """The refusal of a target of a kind that no head can guess for."""
    return Problem(
        f"A draft head cannot guess for a target of the kind {kind!r}.",
        f"It can for {', '.join(TARGETS)}; another target can use n-grams or a draft model.",
    )


def _refuse_unfit_eagle(head: HeadFacts, form: EagleForm, target: FolderFacts) -> None:
    """Raises Problem for a target of other sizes than the head was made for."""
    made = (form.target_hidden, form.target_vocabulary)
    if made != (target.hidden, target.vocabulary):
        raise Problem(
            f"The {head.name} in {head.folder} reads features of {made[0]} numbers and knows "
            f"{made[1]} tokens; this target has {target.hidden} and {target.vocabulary}.",
            "Choose its own target, or another head.",
        )
    if target.layers is not None and form.kind == "eagle-3":
        form.layers_of(target.layers)


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
