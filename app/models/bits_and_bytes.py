"""The precisions that bitsandbytes serves: 4 bits in two codes, and LLM.int8."""

from __future__ import annotations

import importlib
import logging
import os
import warnings
from functools import cache
from typing import Any

import torch
from torch import nn

from app.files import cache_folder
from app.models.hugging_face import transformers

_ASKED: dict[str, dict[str, Any]] = {
    "nf4": {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": True,
    },
    "fp4": {
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "fp4",
        "bnb_4bit_use_double_quant": True,
    },
    "llm-int8": {"load_in_8bit": True},
}
BY_BITSANDBYTES = tuple(_ASKED)
"""The precisions that need bitsandbytes."""

_SIZE = 64
"""Of the layer that is tried: one block of 4-bit weights a row."""
_NEAR = {"nf4": 0.2, "fp4": 0.3, "llm-int8": 0.05}
"""How far that layer may be from the plain one: the length of the difference, as a share."""


def quantisation(precision: str, device: torch.device) -> Any:
    """What transformers is told of a precision of bitsandbytes, for weights yet to be quantised."""
    asked = dict(_ASKED[precision])
    if "load_in_4bit" in asked:
        asked["bnb_4bit_compute_dtype"] = multiplied_in(device)
    return transformers.BitsAndBytesConfig(**asked)


def multiplied_in(device: torch.device) -> torch.dtype:
    """What quantised weights are multiplied in: bf16, or fp16 on cards before it."""
    old = device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.float16 if old else torch.bfloat16


def why_no_bitsandbytes() -> str | None:
    """Why bitsandbytes cannot be used at all, or None; its import may fail in any way at all."""
    # Its compiler would leave a folder in the system's temporary one.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_folder() / "compiled"))
    # It warns of kernels that it does without, and at every call of what it casts.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module("bitsandbytes")
    except Exception as error:
        return _reason(error)
    return None


@cache
def why_not_tried(precision: str, device: torch.device) -> str | None:
    """Why a layer in this precision does not work on a device, or None: found by trying one.

    Some of what bitsandbytes offers is missing on some devices, and shows only in the first pass.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            apart = _apart(precision, device)
    except torch.OutOfMemoryError:  # a full device says nothing of what it can compute
        return None
    except Exception as error:
        return _reason(error)
    return None if apart <= _NEAR[precision] else f"a layer answers wrongly there ({apart:.2g})"


@torch.no_grad()
def _apart(precision: str, device: torch.device) -> float:
    """The length of the difference between a quantised and the plain layer's answer, as a share."""
    numbers = torch.Generator().manual_seed(0)
    plain = nn.Linear(_SIZE, _SIZE, bias=False)
    plain.weight.copy_(torch.randn(_SIZE, _SIZE, generator=numbers))
    x = torch.randn(3, _SIZE, generator=numbers)
    computing = multiplied_in(device)
    held = _layer(precision, computing)
    held.load_state_dict(plain.to(computing).state_dict())
    mine = held.to(device)(x.to(device, computing)).cpu().float()
    due = plain.float()(x)
    return float((mine - due).norm() / due.norm())


def _layer(precision: str, computing: torch.dtype) -> nn.Module:
    """An empty layer of bitsandbytes; its weights are quantised on their way to a device."""
    layers = importlib.import_module("bitsandbytes.nn")
    made: nn.Module
    if precision == "llm-int8":
        made = layers.Linear8bitLt(_SIZE, _SIZE, bias=False, has_fp16_weights=False, threshold=6.0)
    else:
        made = layers.Linear4bit(
            _SIZE,
            _SIZE,
            bias=False,
            compute_dtype=computing,
            compress_statistics=True,
            quant_type=precision,
        )
    return made


def _reason(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
