"""Draft heads on disk: written by training, loaded beside the target that they were made for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from app.library.head_folder import (
    DESCRIPTION,
    WEIGHTS,
    HeadDescription,
    HeadFacts,
    HeadShape,
    MadeFor,
)
from app.models.draft_head import DraftHead, shape_for
from app.models.head_parts import HeadParts, packs
from app.models.language_model import LanguageModel
from app.models.packed_linear import PackedLinear
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


def head_parts(facts: HeadFacts, target: LanguageModel) -> HeadParts:
    """The head beside its target. Raises Problem if it is broken, or made for another target."""
    inner: Any = target.inner
    shape = _described(facts).shape
    if shape_for(inner, shape.vocabulary) != shape:
        raise Problem(
            f"The draft head in {facts.folder} has another form than its target's layers.",
            "Choose its own target, or train a head for this one (`foretoken train`).",
        )
    module, ids = read_head(facts)
    return HeadParts(
        module=module,
        logits=_output_rows(target, ids),
        ids=ids,
        embeddings=inner.get_input_embeddings(),
        rotary=inner.model.rotary_emb,
        copied_rows=len(ids),
    )


def read_head(facts: HeadFacts) -> tuple[DraftHead, Tensor]:
    """The head in fp32 on the CPU, and the target's ids of its tokens [vocabulary], int64.

    Raises Problem if the weights are not those that the description tells of.
    """
    description = _described(facts)
    shape = description.shape
    try:
        held = load_file(facts.folder / WEIGHTS)
        ids = held.pop(_IDS).long()
        head = DraftHead(shape)
        head.load_state_dict(held)
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        raise _broken(facts, str(error).splitlines()[0]) from None
    if not _usable(ids, shape, description.target.vocabulary):
        raise _broken(facts, f"{_IDS} is no ascending list of the target's ids")
    return head.eval().requires_grad_(False), ids


def _described(facts: HeadFacts) -> HeadDescription:
    assert isinstance(facts.description, HeadDescription)
    return facts.description


def _output_rows(target: LanguageModel, ids: Tensor) -> nn.Module:
    """The target's output rows of the tokens that the head can guess."""
    inner: Any = target.inner
    tied = bool(inner.config.tie_word_embeddings)
    given = inner.get_input_embeddings() if tied else inner.get_output_embeddings()
    weight: Tensor = given.weight
    rows = nn.Linear(weight.shape[1], len(ids), bias=False, device="meta")
    held = weight[ids.to(target.device)].to(target.dtype)
    rows.weight = nn.Parameter(held, requires_grad=False)
    return PackedLinear([rows], target.dtype) if packs(target) else rows


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
