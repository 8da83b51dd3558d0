"""Where lessons stand, in one file that is there whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from app.run.problems import Problem
from app.run.teaching import CurvePoint

_STANDING, _VOCABULARY, _BEST = "standing", "vocabulary", "best."


class Standing(msgspec.Struct, forbid_unknown_fields=True):
    """How far the lessons have come."""

    step: int = 0
    epoch: int = 0
    shards: int = 0
    """Shards of this epoch."""
    lesson: int = 0
    """Lessons of this epoch that are over."""
    tokens: int = 0
    seconds: float = 0.0
    curve: list[CurvePoint] = []
    """In the order of time."""
    best: int = 0
    """Which point of the curve was the best."""
    fall: float = 0.0
    """The share at which the learning rate begins to fall."""
    end: float = 1.0
    """The share at which the lessons end."""
    coverage: float = 0.0
    """The share of the written tokens that the head can guess."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All that lessons need to go on."""

    standing: Standing
    vocabulary: Tensor
    """The ids that the head can guess, ascending: [size], int32."""
    tensors: Mapping[str, Tensor]
    """Of the learner, by its names."""
    best: Mapping[str, Tensor]
    """Weights of the head when it was at its best."""


def write_checkpoint(file: Path, kept: Checkpoint) -> None:
    """Replaces the checkpoint. Raises Problem if the disk does not take it."""
    unfinished = file.with_suffix(".part")
    said = {_STANDING: msgspec.json.encode(kept.standing).decode()}
    best = {f"{_BEST}{name}": one for name, one in kept.best.items()}
    tensors = {**kept.tensors, **best, _VOCABULARY: kept.vocabulary}
    try:
        save_file({name: one.cpu().contiguous() for name, one in tensors.items()}, unfinished, said)
        unfinished.replace(file)
    except (OSError, SafetensorError) as error:
        raise Problem(
            f"The checkpoint could not be written to {file}: {error}.",
            "Make room on the disk; the same command goes on from the last one that was written.",
        ) from None


def read_checkpoint(file: Path) -> Checkpoint | None:
    """The checkpoint, or None if there is none. Raises Problem if it cannot be read."""
    if not file.is_file():
        return None
    try:
        with safe_open(file, "pt") as opened:
            said = (opened.metadata() or {})[_STANDING]
        standing = msgspec.json.decode(said, type=Standing)
        tensors = load_file(file)
        vocabulary = tensors.pop(_VOCABULARY)
    except (OSError, SafetensorError, KeyError, msgspec.MsgspecError) as error:
        raise unusable(file, str(error)) from None
    best = {name: tensors.pop(name) for name in list(tensors) if name.startswith(_BEST)}
    best = {name.removeprefix(_BEST): one for name, one in best.items()}
    return Checkpoint(standing, vocabulary, tensors, best)


def unusable(file: Path, reason: str) -> Problem:
    """What to say of a checkpoint that cannot be gone on from."""
    return Problem(
        f"The checkpoint {file} cannot be read: {reason}.",
        "Delete it: the lessons then begin anew, with the texts that were written.",
    )
