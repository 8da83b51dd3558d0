"""A training as it lies in its folder: whose it is, and what has come of it so far."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.library.catalogue import Catalogue
from app.library.entries import FolderSource, ModelEntry
from app.library.head_folder import check_own_head, fingerprint, is_own_head
from app.library.json_text import decode
from app.library.preflight import check
from app.library.prompts import read_prompts
from app.library.sources import locate
from app.run.problems import Problem
from app.run.teaching import Teach

CLAIM = "training.json"
HEAD = "head"
"""The folder of the head, within that of the training."""


class Identity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What cannot change from one time to the next."""

    target: str
    """The target's name."""
    fingerprint: str
    """Of its weights."""
    prompts: str
    """A hash of a person's own prompts; empty for generated ones."""
    seed: int
    draft_vocabulary: int


class Claimed(msgspec.Struct, forbid_unknown_fields=True):
    """What stands in a training's folder of whose it is."""

    identity: Identity
    writing_seconds: float = 0.0


class Found(msgspec.Struct, frozen=True):
    """What a folder holds for the training that is wanted."""

    begun: bool
    """Whether there is a training, of this or of another wish."""
    different: tuple[str, ...] = ()
    """What is otherwise than wanted."""
    head: Path | None = None
    """The head that has come of it so far."""
    trained: str = ""
    """How that was trained, in a sentence."""


def look_at(catalogue: Catalogue, wanted: Teach) -> Found:
    """What the folder of a training holds already; loads nothing.

    A target that is not on this machine yet is taken for the one that the training is of. Raises
    Problem for what cannot be read.
    """
    folder = Path(wanted.out).expanduser()
    claimed = read_claim(folder)
    if claimed is None:
        return Found(begun=False)
    head = folder / HEAD
    described = check_own_head(head)[0] if is_own_head(head) else None
    entry = target_entry(catalogue, wanted.target)
    place = locate(entry)
    target = check(place) if place else None
    most = wanted.draft_vocabulary
    ours = Identity(
        target=entry.title,
        fingerprint=fingerprint(target) if target else claimed.identity.fingerprint,
        prompts=prompts_mark(own_prompts(wanted.prompts)),
        seed=wanted.seed,
        draft_vocabulary=min(most, target.vocabulary if target else most),
    )
    different = tuple(differences(claimed.identity, ours))
    if described is None:
        return Found(begun=True, different=different)
    return Found(True, different, head, described.trained)


def read_claim(folder: Path) -> Claimed | None:
    """Whose a folder is; None if nobody's. Raises Problem for a file that cannot be read."""
    file = folder / CLAIM
    try:
        return decode(file.read_bytes(), Claimed)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise Problem(
            f"{file} cannot be read: {error}.", "Choose another folder, or delete it."
        ) from None


def differences(theirs: Identity, ours: Identity) -> list[str]:
    """In what one training is another, in words."""
    return [
        f"{field.replace('_', ' ')} {getattr(theirs, field)!r} instead of {getattr(ours, field)!r}"
        for field in Identity.__struct_fields__
        if getattr(theirs, field) != getattr(ours, field)
    ]


def own_prompts(file: str) -> Sequence[str]:
    """The prompts in the file that was named; none if none was. Raises Problem for a bad file."""
    if not file:
        return ()
    found = read_prompts(Path(file).expanduser())
    return tuple(dict.fromkeys(turn for prompt in found.prompts for turn in prompt.turns))


def prompts_mark(prompts: Sequence[str]) -> str:
    """By what prompts are known again: a hash; empty for generated ones."""
    if not prompts:
        return ""
    return hashlib.sha256(msgspec.json.encode(list(prompts))).hexdigest()[:16]


def target_entry(catalogue: Catalogue, name: str) -> ModelEntry:
    """The target of the pair of this name, the model of this name, or a folder.

    Raises Problem if it is none of them.
    """
    for pair in catalogue.pairs:
        if pair.name == name:
            return catalogue.model(pair.target)
    for model in catalogue.models:
        if model.name == name:
            return model
    place = Path(name).expanduser()
    if name and place.exists():
        place = place.resolve()
        title = (place.stem if place.is_file() else place.name) or "model"
        return ModelEntry(title, title, FolderSource(str(place)))
    names = [*(pair.name for pair in catalogue.pairs), *(one.name for one in catalogue.models)]
    raise Problem(
        f"{name!r} is no pair, no model and no folder.",
        f"Give a folder, or one of: {', '.join(names) or 'none is on offer'}.",
    )
