"""A target of random weights and a draft model for it, as a run is given its pair."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from app.library.preflight import FolderFacts
from app.library.random_shapes import RandomShape
from app.models.exhausted import memory_guard
from app.models.fixed.choice import choose_passes
from app.models.language_model import LanguageModel
from app.models.loading import LoadedModel, prove
from app.models.machine import PeakWatch, make_current
from app.models.pair import LoadedPair
from app.models.precision import DTYPES, loading_arguments
from app.models.random_model import KINDS, random_inner
from app.models.read_bytes import read_bytes
from app.models.stages import Stages
from app.models.tokenizer import Tokenizer
from app.run.preparation import Prepare
from app.run.settings import PassKind, Precision

PACKS = ("fp32", "bf16")
"""The precisions in which linear layers are packed on a CPU, so that transformers' own way of
running the same weights needs a second copy of them."""


@dataclass(frozen=True, slots=True)
class RandomPair:
    """The pair, and what is measured beside its own passes."""

    pair: LoadedPair
    plain: Any
    """The target's weights as transformers alone runs them."""
    read_bytes: int
    """Bytes of weights that a pass of one row of the target reads."""
    peak_bytes: int | None
    """The most that was held on a card while both were made; None elsewhere."""


def random_pair(
    target: RandomShape,
    draft: RandomShape | None,
    *,
    precision: Precision,
    device: torch.device,
    passes: PassKind = "auto",
    stages: Stages,
) -> RandomPair:
    """Both models, made on the device, and proven as loaded ones are; `passes` is how they are to
    compute theirs.

    Raises Problem for a precision that the device cannot take, and if memory does not suffice;
    Cancelled when `stages` does.
    """
    make_current(device)
    peak = PeakWatch(device)
    first, read = _made(target, precision, device, stages)
    second = _made(draft, precision, device, stages)[0] if draft else None
    plain = first.model.inner
    if first.model.kernel and device.type == "cpu":  # its layers are packed
        plain = _inner(target, precision, device, stages)
    held = Prepare(first.model.name, precision, precision, str(device), passes=passes)
    pair = LoadedPair(held, first, second, Numbers(target.vocabulary))
    for model in pair.models:
        stages.begin(f"choosing how the passes of {model.name} are computed")
        choose_passes(model, passes, ask=stages.ask)
    return RandomPair(pair, plain, read, peak.bytes if device.type == "cuda" else None)


def _made(
    shape: RandomShape, precision: Precision, device: torch.device, stages: Stages
) -> tuple[LoadedModel, int]:
    """A proven model, and the bytes that its passes read."""
    inner = _inner(shape, precision, device, stages)
    read, facts = read_bytes(inner), facts_of(shape)
    model = LanguageModel(
        inner, name=shape.name, folder=facts.folder, precision=precision, device=device
    )
    with memory_guard(shape.name):
        if device.type == "cpu" and precision in PACKS:
            layers = sum(type(layer) is torch.nn.Linear for layer in inner.modules())
            model.pack(DTYPES[precision], stages.counted(f"packing {shape.name}", layers, "layers"))
        elif device.type == "cuda":
            model.take_lean_pass()
        return prove(model, facts, stages), read


def _inner(shape: RandomShape, precision: Precision, device: torch.device, stages: Stages) -> Any:
    """The model as transformers has it."""
    stage = f"making {shape.name} in {precision} of random weights"
    stages.begin(stage)
    arguments = loading_arguments(precision, device)
    with (
        memory_guard(f"while {shape.name} was made"),
        stages.reading(stage),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        return random_inner(shape, device, **arguments)


def facts_of(shape: RandomShape) -> FolderFacts:
    """What the folder of a model of this shape would say; it names no file."""
    return FolderFacts(
        folder=Path("random weights"),
        architecture=KINDS[shape.kind][1],
        model_type=shape.kind,
        vocabulary=shape.vocabulary,
        context_length=shape.context_length,
        dtype="float32",
        layers=shape.layers,
        hidden=shape.hidden,
        heads=shape.heads,
        key_value_heads=shape.key_value_heads,
        parameters=shape.parameters,
        weight_bytes=0,
        weight_files=(),
        tokenizer=None,
        quantised=None,
        requantised_from=None,
        suggested_sampling=None,
        end_ids=(),
        notes=("The weights are random: its texts mean nothing.",),
    )


class Numbers(Tokenizer):
    """Writes ids as numbers with a space before each: random weights have no words."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    @property
    def has_chat_template(self) -> bool:
        """It has none."""
        return False

    def decode(self, ids: Sequence[int]) -> str:
        """The ids in digits."""
        return "".join(f" {one}" for one in ids)

    def encode(self, text: str) -> list[int]:
        """The ids that a text of numbers stands for."""
        return [int(part) for part in text.split()]

    def _encoded(self, text: str, *, special: bool) -> list[int]:
        return self.encode(text)
