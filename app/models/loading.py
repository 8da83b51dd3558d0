"""From a checked folder to a loaded, proven model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch

from app.library.preflight import FolderFacts
from app.models.hugging_face import FROM_FOLDERS_ONLY, transformers
from app.models.int8_linear import linear_share
from app.models.language_model import LanguageModel
from app.models.machine import out_of_memory
from app.models.precision import DTYPES, loading_arguments
from app.models.proofs import Proof, prove_rewinding, prove_rows_independent
from app.models.weights_note import weights_note
from app.run.events import ModelFacts
from app.run.problems import Problem

_MAPPED = ("float32", "bfloat16", "float16")
"""Stored types that a file is mapped in, instead of being read and converted as a whole."""

_LEAST_SHARE = 0.5
"""Share of the weights, without the vocabulary's, that int8 has to serve."""


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
            suggested_sampling=self.folder.suggested_sampling,
        )


def load_weights(
    folder: FolderFacts, *, name: str, precision: str, device: torch.device
) -> LanguageModel:
    """The model of a folder in a settled precision. Raises Problem if it cannot be loaded whole."""
    arguments = loading_arguments(precision, device, folder=folder)
    packs = device.type == "cpu" and precision in ("fp32", "bf16", "int8")
    if packs and folder.quantised is None and folder.dtype in _MAPPED:
        # As they lie in the file, which is only mapped: packing converts them one by one.
        arguments["dtype"] = getattr(torch, folder.dtype)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inner, info = transformers.AutoModelForCausalLM.from_pretrained(
                folder.folder,
                device_map={"": device},
                output_loading_info=True,
                use_safetensors=True,
                **FROM_FOLDERS_ONLY,
                **arguments,
            )
    except torch.OutOfMemoryError:
        raise out_of_memory(name) from None
    except Exception as error:  # the libraries raise anything for a file that is not whole
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        if "ignore_mismatched_sizes" in reason:  # the library's advice, which would ruin the model
            raise _mismatch(name, "its config.json asks for weights of other shapes") from None
        raise Problem(
            f"{name} cannot be loaded in {precision}: {reason}",
            "Choose another precision, or check the model's folder.",
        ) from None
    _refuse_incomplete(name, info)
    if precision == "int8":
        _refuse_unserved(name, linear_share(inner))
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
        model.pack(DTYPES[precision])
    return model


def prove(model: LanguageModel, folder: FolderFacts) -> LoadedModel:
    """Tries on the loaded model what speculation depends on."""
    return LoadedModel(model, folder, prove_rewinding(model), prove_rows_independent(model))


def load(
    folder: FolderFacts,
    *,
    name: str,
    precision: str,
    device: torch.device,
    pause: Callable[[], None],
) -> LoadedModel:
    """Loads and proves a model; `pause` is called between the two."""
    pause()
    model = load_weights(folder, name=name, precision=precision, device=device)
    pause()
    return prove(model, folder)


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


def _mismatch(name: str, said: str) -> Problem:
    return Problem(
        f"{name}: {said}.",
        "Fetch the model again; its weights and its config.json do not belong together.",
    )
