"""How weights are held: what each precision means, and which a machine can take."""

from __future__ import annotations

import importlib
import logging
import os
import warnings
from typing import Any

import psutil
import torch

from app.files import cache_folder
from app.library.preflight import FolderFacts
from app.models.hugging_face import transformers
from app.models.packed_linear import computing, why_not_packed
from app.run.problems import Problem
from app.run.settings import Precision

PRECISIONS: dict[Precision, str] = {
    "fp32": "32-bit floating point",
    "bf16": "16-bit brain floating point",
    "fp16": "16-bit floating point",
    "int8": "8-bit whole numbers, a scale for each row of the weights and of a pass; the rest fp32",
    "nf4": "4-bit NormalFloat (bitsandbytes)",
}
"""Every precision and what it is."""

DTYPES: dict[Precision, torch.dtype] = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "int8": torch.int8,
}
"""How the linear layers are held, where that is a type of torch's own."""


_ON_CARD: tuple[Precision, ...] = ("nf4", "bf16", "fp16", "fp32")
_ROOM = 1.4
"""Memory that a model takes on a CPU while it is loaded, as a multiple of its weights."""


def choose_precision(folder: FolderFacts, device: torch.device) -> tuple[Precision, str]:
    """The precision to open a model in unless one is asked for, and why."""
    if device.type == "cuda":
        chosen = next(precision for precision in _ON_CARD if why_not(precision, device) is None)
        return chosen, "the default on a graphics card"
    if device.type != "cpu":
        return "bf16", f"the default on {device.type}"
    if _ROOM * 4 * folder.parameters > psutil.virtual_memory().available:
        return "bf16", "used, as fp32 would not fit into the free memory"
    return "fp32", "the default on a CPU: greedy texts are the same with and without guesses"


def loading_arguments(precision: Precision, device: torch.device) -> dict[str, Any]:
    """What `from_pretrained` is given. Raises Problem if this machine cannot take the precision."""
    refusal = why_not(precision, device)
    if refusal is not None:
        raise refusal
    if precision != "nf4":
        return {"dtype": computing(DTYPES[precision])}
    multiplied = _computing_dtype(device)
    quantisation = transformers.BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=multiplied,
    )
    return {"dtype": multiplied, "quantization_config": quantisation}


def _computing_dtype(device: torch.device) -> torch.dtype:
    """What 4-bit weights are multiplied in: bf16, or fp16 on cards before it."""
    old = device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.float16 if old else torch.bfloat16


def why_not(precision: Precision, device: torch.device) -> Problem | None:
    """Why a device cannot take a precision, or None if it can."""
    if precision == "fp16" and device.type == "cpu":
        return Problem(
            "fp16 crawls on a CPU: few of them can compute in it.", "Choose bf16 or fp32."
        )
    if precision == "int8":
        return _why_no_int8(device)
    return _why_no_bitsandbytes() if precision == "nf4" else None


def precision_note(precision: Precision, requantised_from: str | None) -> str:
    """What the weights are, in words."""
    meaning = PRECISIONS[precision]
    return f"{meaning}; re-quantised from {requantised_from}" if requantised_from else meaning


def _why_no_int8(device: torch.device) -> Problem | None:
    """Why linear layers cannot be held in 8 bits, or None; the kernel is one for processors."""
    if device.type != "cpu":
        serves = "llm-int8 or nf4" if device.type == "cuda" else "bf16"
        return Problem("int8 is computed by a CPU only.", f"Choose {serves} here.")
    hindrance = why_not_packed(torch.int8)
    if hindrance is None:
        return None
    return Problem(f"int8 cannot be used here: {hindrance}.", "Choose bf16 or fp32.")


def _why_no_bitsandbytes() -> Problem | None:
    """Why bitsandbytes cannot be used, or None; its import may fail in any way at all."""
    # Its compiler would leave a folder in the system's temporary one.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_folder() / "compiled"))
    # It warns that a kernel for some CPUs would have to be fetched from a hub: here nothing is.
    logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module("bitsandbytes")
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return Problem(
            f"nf4 needs bitsandbytes, which cannot be used here: {reason}",
            "Choose bf16 or fp32, or install bitsandbytes 0.50 or newer.",
        )
    return None
