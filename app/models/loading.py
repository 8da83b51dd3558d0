"""From a checked folder to a loaded, proven model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import nn

from app.library.mtp_layout import mtp_of
from app.library.preflight import FolderFacts
from app.models.asked_layers import asked_before_layers
from app.models.exhausted import is_out_of_memory, memory_guard
from app.models.int8_linear import linear_share
from app.models.language_model import LanguageModel
from app.models.offload import (
    does_not_fit,
    forget_with,
    offload_note,
    placement,
    quantised_does_not_fit,
    refuse_unasked,
    room_on_disk,
)
from app.models.precision import DTYPES, loading_arguments
from app.models.proofs import (
    Proof,
    prove_early_exit,
    prove_rewinding,
    prove_rows_independent,
    prove_trees,
)
from app.models.stages import Stages, unseen
from app.models.weight_reading import read_model
from app.models.weights_note import weights_note
from app.run.events import ModelFacts
from app.run.problems import Cancelled, Damaged, Problem, release_frames

_MAPPED = ("float32", "bfloat16", "float16")
"""Stored types that a file is mapped in, instead of being read and converted as a whole."""

_LEAST_SHARE = 0.5
"""Share of the weights, without the vocabulary's, that int8 has to serve."""


@dataclass(frozen=True)
class LoadedModel:
    """A model in memory, what its folder says of it, and what was proved of it."""

    model: LanguageModel
    folder: FolderFacts
    rewinding: Proof
    rows: Proof

    @cached_property
    def trees(self) -> Proof:
        """Whether it reads guesses that branch as it reads each branch; tried when first asked."""
        return prove_trees(self.model)

    @cached_property
    def early_exit(self) -> Proof:
        """Whether its first layers can guess ahead of it; tried when first asked."""
        return prove_early_exit(self.model)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of its files."""
        found = [*self.folder.notes]
        unused = self.model.unused_weights
        if unused:
            found.append(
                f"{len(unused)} of the weights in its files are not used, {unused[0]} among them: "
                "has config.json been changed?"
            )
        if self.model.offloaded:
            found.append(offload_note(self.model.offloaded))
        return tuple(f"{self.model.name}: {note}" for note in found)

    @property
    def facts(self) -> ModelFacts:
        """The model as it is named on screen and in reports."""
        precision = self.model.precision
        return ModelFacts(
            name=self.model.name,
            folder=str(self.model.folder),
            precision=precision,
            precision_note=weights_note(precision, self.folder),
            device=str(self.model.device),
            parameters=self.model.parameters,
            weight_bytes=self.model.weight_bytes,
            vocabulary=self.model.width,
            context_length=self.model.context_length,
            attention=self.model.attention,
            rewinds=self.rewinding.holds,
            rewind_note=self.rewinding.note,
            rows_independent=self.rows.holds,
            rows_note=self.rows.note,
            kernel=self.model.kernel,
            offloaded=self.model.offloaded,
            passes=self.model.passes.said,
            suggested_sampling=self.folder.suggested_sampling,
        )


def load_weights(
    folder: FolderFacts,
    *,
    name: str,
    precision: str,
    device: torch.device,
    allow_offload: bool = False,
    stages: Stages | None = None,
) -> LanguageModel:
    """The model of a folder in a settled precision.

    Raises Problem if it cannot be loaded whole, Cancelled between two weights when `stages` does.
    """
    with room_on_disk() as place:
        return _load_weights(
            folder,
            place,
            name=name,
            precision=precision,
            device=device,
            allow_offload=allow_offload,
            stages=stages or unseen(),
        )


def _load_weights(
    folder: FolderFacts,
    place: Path,
    *,
    name: str,
    precision: str,
    device: torch.device,
    allow_offload: bool,
    stages: Stages,
) -> LanguageModel:
    """As `load_weights`; what has to be written to the disk comes into the folder `place`."""
    stages.begin(f"reading {name} in {precision}")
    arguments = loading_arguments(precision, device, folder=folder)
    packs = device.type == "cpu" and precision in ("fp32", "bf16", "int8")
    if packs and folder.quantised is None and folder.dtype in _MAPPED:
        # As they lie in the file, which is only mapped: packing converts them one by one.
        arguments["dtype"] = getattr(torch, folder.dtype)
    try:
        with warnings.catch_warnings(), stages.reading(f"reading {name} in {precision}"):
            warnings.simplefilter("ignore")
            inner, info = read_model(
                folder,
                mapped=packs,
                **placement(device, place, allow_offload=allow_offload),
                **arguments,
            )
    except Cancelled:
        raise
    except Exception as error:  # the libraries raise anything for a file that is not whole
        if is_out_of_memory(error):
            release_frames(error)
            raise does_not_fit(name, precision, device, allow_offload=allow_offload) from None
        raise _not_read(error, name, precision) from None
    _refuse_incomplete(name, info)
    if precision == "int8":
        _refuse_unserved(name, linear_share(inner))
    inner.eval()
    mtp = mtp_of(folder.folder)  # modules that are read by themselves, if a method asks for them
    unexpected = sorted(map(str, info.get("unexpected_keys") or ()))
    unused = [key for key in unexpected if mtp is None or not mtp.owns(key)]
    model = LanguageModel(
        inner,
        name=name,
        folder=folder.folder,
        precision=precision,
        unused_weights=tuple(unused),
        device=device,
    )
    refuse_unasked(name, model.offloaded, allow_offload=allow_offload)
    if model.offloaded:
        forget_with(inner, place)
    elif packs:
        layers = sum(type(layer) is nn.Linear for layer in inner.modules())
        advance = stages.counted(f"packing {name}", layers, "layers")
        with memory_guard(name):
            model.pack(DTYPES[precision], advance)
    elif device.type == "cuda":
        with asked_before_layers(inner, stages.ask):
            model.take_lean_pass()
    return model


def _not_read(error: Exception, name: str, precision: str) -> Problem:
    """What it means that the libraries could not read a model, in words."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    if "ignore_mismatched_sizes" in reason:  # the library's advice, which would ruin the model
        return _mismatch(name, "its config.json asks for weights of other shapes")
    if "dispatched on the CPU" in reason:
        return quantised_does_not_fit(name, precision)
    return Problem(
        f"{name} cannot be loaded in {precision}: {reason}",
        "Choose another precision, or check the model's folder.",
    )


def prove(model: LanguageModel, folder: FolderFacts, stages: Stages) -> LoadedModel:
    """Tries on the loaded model what speculation depends on. Raises Cancelled when `stages` does,
    which are asked before every layer of every pass.
    """
    with asked_before_layers(model.inner, stages.ask):
        stages.begin(f"proving that {model.name} can be rewound")
        rewinding = prove_rewinding(model)
        stages.begin(f"proving that the rows of {model.name} do not know each other")
        return LoadedModel(model, folder, rewinding, prove_rows_independent(model))


def load(
    folder: FolderFacts,
    *,
    name: str,
    precision: str,
    device: torch.device,
    allow_offload: bool = False,
    stages: Stages | None = None,
) -> LoadedModel:
    """Loads and proves a model. Raises as `load_weights` does."""
    stages = stages or unseen()
    model = load_weights(
        folder,
        name=name,
        precision=precision,
        device=device,
        allow_offload=allow_offload,
        stages=stages,
    )
    return prove(model, folder, stages)


def _refuse_unserved(name: str, share: float) -> None:
    """Models of few linear layers would come out in fp32, whatever was asked for."""
    if share < _LEAST_SHARE:
        raise Problem(
            f"int8 holds linear layers, and these make up {share:.0%} of {name}.",
            "Choose bf16 or fp32.",
        )


def _refuse_incomplete(name: str, info: dict[str, object]) -> None:
    """Weights that the files do not hold would be random: that is no model."""
    for fault in ("missing_keys", "mismatched_keys"):
        keys = sorted(map(str, info.get(fault) or ()))  # type: ignore[call-overload]
        if keys:
            more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
            said = f"{fault.replace('_', ' ')} in its files: {', '.join(keys[:3])}{more}"
            raise _mismatch(name, said)


def _mismatch(name: str, said: str) -> Damaged:
    return Damaged(
        f"{name}: {said}.",
        "Fetch the model again; its weights and its config.json do not belong together.",
    )
