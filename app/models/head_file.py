"""Draft heads on disk: written by training, loaded beside the target that they were made for."""

from __future__ import annotations

from pathlib import Path

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from app.library.head_folder import (
    DESCRIPTION,
    WEIGHTS,
    HeadDescription,
    HeadFacts,
    HeadShape,
    MadeFor,
)
from app.models.draft_head import DraftHead
from app.run.problems import Problem

_IDS = "draft_to_target"


def save_head(
    folder: Path, head: DraftHead, draft_to_target: Tensor, made_for: MadeFor, trained: str
) -> None:
    """Writes a head with 16-bit weights, each file under another name first.

    `draft_to_target` [vocabulary] are ascending ids of the target; `trained` is a sentence. Raises
    Problem if the disk does not take it.
    """
    description = HeadDescription("foretoken draft head 1", head.shape, made_for, trained)
    tensors = {name: value.half().cpu() for name, value in head.state_dict().items()}
    tensors[_IDS] = draft_to_target.to("cpu", torch.int32)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        weights = folder / f"{WEIGHTS}.part"
        save_file(tensors, weights)
        weights.replace(folder / WEIGHTS)
        said = folder / f"{DESCRIPTION}.part"
        said.write_bytes(msgspec.json.format(msgspec.json.encode(description)))
        said.replace(folder / DESCRIPTION)
    except (OSError, SafetensorError) as error:
        raise Problem(
            f"The draft head could not be written to {folder}: {error}.",
            "Make room on the disk, or choose another folder.",
        ) from None


def read_head(facts: HeadFacts) -> tuple[DraftHead, Tensor]:
    """The head in fp32 on the CPU, and the target's ids of its tokens [vocabulary], int64.

    Raises Problem if the weights are not those that the description tells of.
    """
    shape = facts.description.shape
    try:
        held = load_file(facts.folder / WEIGHTS)
        ids = held.pop(_IDS).long()
        head = DraftHead(shape)
        head.load_state_dict(held)
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        raise _broken(facts, str(error).splitlines()[0]) from None
    if not _usable(ids, shape, facts.description.target.vocabulary):
        raise _broken(facts, f"{_IDS} is no ascending list of the target's ids")
    return head.eval().requires_grad_(False), ids


def _usable(ids: Tensor, shape: HeadShape, vocabulary: int) -> bool:
    """Whether these are as many ids as the head guesses, ascending and known to the target."""
    return (
        shape.vocabulary > 0
        and ids.shape == (shape.vocabulary,)
        and bool((ids.diff() > 0).all())
        and int(ids[0]) >= 0
        and int(ids[-1]) < vocabulary
    )


def _broken(facts: HeadFacts, reason: str) -> Problem:
    return Problem(
        f"The draft head in {facts.folder} is broken: {reason}.", "Get it or train it again."
    )
