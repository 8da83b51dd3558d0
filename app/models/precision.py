"""How weights are held: what each precision means, and which a machine can take."""

from __future__ import annotations

from typing import Any, get_args

import psutil
import torch

from app.library.device_precision import default_precision
from app.library.model_files import Config, read_json
from app.library.preflight import FolderFacts
from app.library.quantised import Quantised
from app.models.bits_and_bytes import (
    BY_BITSANDBYTES,
    multiplied_in,
    quantisation,
    why_no_bitsandbytes,
    why_not_tried,
)
from app.models.hugging_face import AutoQuantizationConfig
from app.models.packed_linear import computing, why_not_packed
from app.run.problems import Problem
from app.run.settings import Precision

PRECISIONS: dict[str, str] = {
    "fp32": "32-bit floating point",
    "bf16": "16-bit brain floating point",
    "fp16": "16-bit floating point",
    "int8": "8-bit whole numbers, a scale for each row of the weights and of a pass; all but "
    "linear layers in fp32",
    "llm-int8": "LLM.int8 of bitsandbytes: 8-bit whole numbers, columns of large activations and "
    "the output layer in 16 bits",
    "nf4": "4-bit NormalFloat of bitsandbytes, double quantisation; output layer in 16 bits",
    "fp4": "4-bit floating point of bitsandbytes, double quantisation; output layer in 16 bits",
}
"""Every precision and what it is."""

DTYPES: dict[str, torch.dtype] = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "int8": torch.int8,
}
"""How the linear layers are held, where that is a type of torch's own."""


def choose_precision(folder: FolderFacts, device: torch.device) -> tuple[Precision, str]:
    """The precision to open a model in unless one is asked for, and why."""
    chosen = default_precision(
        device.type,
        folder.parameters,
        is_taken=lambda precision: why_not(precision, device) is None,
        free_bytes=int(psutil.virtual_memory().available) if device.type == "cpu" else None,
    )
    if device.type == "cuda":
        return chosen, "the default on a graphics card"
    if device.type != "cpu":
        return chosen, f"the default on {device.type}"
    if chosen == "bf16":
        return chosen, "used, as fp32 would not fit into the free memory"
    return chosen, "the default on a CPU: greedy texts are the same with and without guesses"


def settle_precision(
    folder: FolderFacts, wanted: Precision | None, device: torch.device
) -> tuple[str, str]:
    """The precision to open a folder in, and why if no one asked for it.

    What a folder holds quantised stays as it is. Raises Problem if another precision is wanted.
    """
    own = folder.quantised
    if own is None:
        return (wanted, "") if wanted is not None else choose_precision(folder, device)
    if own.held is None:
        return _widened(own, wanted, device)
    if wanted not in (None, own.held):
        raise Problem(
            f"The weights in {folder.folder} are held in {own.held}; they are not converted to "
            f"{wanted}.",
            "Leave the precision to the default, or choose the model's own repository.",
        )
    return own.held, "how its folder holds its weights"


def _widened(own: Quantised, wanted: Precision | None, device: torch.device) -> tuple[str, str]:
    """The precision that a folder's quantised weights are widened to."""
    if wanted in BY_BITSANDBYTES:
        raise Problem(
            f"The weights are quantised by {own.method}; they are not quantised a second time "
            f"to {wanted}.",
            "Choose bf16, or the model's own repository.",
        )
    return (wanted, "") if wanted else ("bf16", f"what {own.method} weights are widened to")


def loading_arguments(
    precision: str, device: torch.device, *, folder: FolderFacts | None = None
) -> dict[str, Any]:
    """What `from_pretrained` is given. Raises Problem if this machine cannot take the precision."""
    refusal = why_not(precision, device)
    if refusal is not None:
        raise refusal
    own = folder.quantised if folder else None
    if folder is not None and own is not None:
        if own.held is None:
            declared = read_json(folder.folder / "config.json", Config).quantised or {}
            widening = AutoQuantizationConfig.from_dict({**declared, "dequantize": True})
            return {"dtype": computing(DTYPES[precision]), "quantization_config": widening}
        # Few CPUs compute in fp16, which the rest of such a folder often is in.
        return {"dtype": multiplied_in(device) if device.type == "cpu" else "auto"}
    if precision not in BY_BITSANDBYTES:
        return {"dtype": computing(DTYPES[precision])}
    return {
        "dtype": multiplied_in(device),
        "quantization_config": quantisation(precision, device),
    }


def refusals(device: torch.device) -> dict[str, str]:
    """Why a device cannot take a precision, in a sentence, for each that it cannot take."""
    found = {precision: why_not(precision, device) for precision in get_args(Precision)}
    return {precision: str(refusal) for precision, refusal in found.items() if refusal}


def why_not(precision: str, device: torch.device) -> Problem | None:
    """Why a device cannot take a precision, or None if it can, or if only loading will tell."""
    if precision == "fp16" and device.type == "cpu":
        return Problem(
            "fp16 crawls on a CPU: few of them can compute in it.", "Choose bf16 or fp32."
        )
    if precision == "int8":
        return _why_no_int8(device)
    return _why_not_quantised(precision, device) if precision in BY_BITSANDBYTES else None


def _why_no_int8(device: torch.device) -> Problem | None:
    """Why linear layers cannot be held in 8 bits, or None; the kernel is one for processors."""
    if device.type != "cpu":
        serves = "llm-int8 or nf4" if device.type == "cuda" else "bf16"
        return Problem("int8 is computed by a CPU only.", f"Choose {serves} here.")
    hindrance = why_not_packed(torch.int8)
    if hindrance is None:
        return None
    return Problem(f"int8 cannot be used here: {hindrance}.", "Choose bf16 or fp32.")


def _why_not_quantised(precision: str, device: torch.device) -> Problem | None:
    """Why bitsandbytes cannot serve a precision on a device, or None."""
    hindrance = why_no_bitsandbytes()
    if hindrance is not None:
        return Problem(
            f"{precision} needs bitsandbytes, which cannot be used here: {hindrance}",
            "Choose bf16 or fp32, or install bitsandbytes 0.50 or newer.",
        )
    hindrance = why_not_tried(precision, device)
    if hindrance is None:
        return None
    return Problem(
        f"bitsandbytes cannot compute {precision} on {device.type} here: {hindrance}",
        "Choose bf16 or fp32.",
    )
