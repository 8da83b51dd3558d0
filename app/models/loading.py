"""From a checked folder to a loaded, proven model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch

from app.library.preflight import FolderFacts
from app.models.exhausted import is_out_of_memory, memory_guard
from app.models.language_model import LanguageModel
from app.models.machine import out_of_memory
from app.models.precision import DTYPES, loading_arguments, precision_note
from app.models.proofs import Proof, prove_rewinding, prove_rows_independent
from app.models.weight_reading import read_model
from app.run.events import ModelFacts
from app.run.problems import Problem
from app.run.settings import Precision

_MAPPED = ("float32", "bfloat16", "float16")
"""Stored types that a file is mapped in, instead of being read and converted as a whole."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory, what its folder says of it, and what was proved of it."""

    model: LanguageModel
    folder: FolderFacts
    rewinding: Proof
    rows: Proof

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
        return tuple(f"{self.model.name}: {note}" for note in found)

    @property
    def facts(self) -> ModelFacts:
        """The model as it is named on screen and in reports."""
        precision = self.model.precision
        return ModelFacts(
            name=self.model.name,
            folder=str(self.model.folder),
            precision=precision,
            precision_note=precision_note(precision, self.folder.requantised_from),
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
            suggested_sampling=self.folder.suggested_sampling,
        )


def load_weights(
    folder: FolderFacts, *, name: str, precision: Precision, device: torch.device
) -> LanguageModel:
    """The model of a folder in this precision. Raises Problem if it cannot be loaded whole."""
    arguments = loading_arguments(precision, device)
    packs = device.type == "cpu" and precision in ("fp32", "bf16")
    if packs and folder.quantised is None and folder.dtype in _MAPPED:
        # As they lie in the file, which is only mapped: packing converts them one by one.
        arguments["dtype"] = getattr(torch, folder.dtype)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inner, info = read_model(folder, mapped=packs, device_map={"": device}, **arguments)
    except Exception as error:  # the libraries raise anything for a file that is not whole
        if is_out_of_memory(error):
            raise out_of_memory(name) from None
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        if "ignore_mismatched_sizes" in reason:  # the library's advice, which would ruin the model
            raise _mismatch(name, "its config.json asks for weights of other shapes") from None
        raise Problem(
            f"{name} cannot be loaded in {precision}: {reason}",
            "Choose another precision, or check the model's folder.",
        ) from None
    _refuse_incomplete(name, info)
    inner.eval()
    unused = sorted(map(str, info.get("unexpected_keys") or ()))
    model = LanguageModel(
        inner,
        name=name,
        folder=folder.folder,
        precision=precision,
        unused_weights=tuple(unused),
    )
    if packs:
        with memory_guard(name):
            model.pack(DTYPES[precision])
    return model


def prove(model: LanguageModel, folder: FolderFacts) -> LoadedModel:
    """Tries on the loaded model what speculation depends on."""
    return LoadedModel(model, folder, prove_rewinding(model), prove_rows_independent(model))


def load(
    folder: FolderFacts,
    *,
    name: str,
    precision: Precision,
    device: torch.device,
    pause: Callable[[], None],
) -> LoadedModel:
    """Loads and proves a model; `pause` is called between the two."""
    pause()
    model = load_weights(folder, name=name, precision=precision, device=device)
    pause()
    return prove(model, folder)


def _refuse_incomplete(name: str, info: dict[str, object]) -> None:
    """Weights that the files do not hold would be random: that is no model."""
    for fault in ("missing_keys", "mismatched_keys"):
        keys = sorted(map(str, info.get(fault) or ()))  # type: ignore[call-overload]
        if keys:
            more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
            said = f"{fault.replace('_', ' ')} in its files: {', '.join(keys[:3])}{more}"
            raise _mismatch(name, said)


def _mismatch(name: str, said: str) -> Problem:
    return Problem(
        f"{name}: {said}.",
        "Fetch the model again; its weights and its config.json do not belong together.",
    )
