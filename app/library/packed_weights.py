"""How many weights a stored tensor stands for: quantised ones are packed, or are scales of others.

The layouts are those that transformers' readers name: bitsandbytes' 4 bits lie two in a byte beside
tables under longer names, GPTQ and AWQ fill words of 32 bits, MXFP4 has blocks of two in a byte.
"""

from __future__ import annotations

from app.library.quantised import Quantised
from app.library.weight_files import TensorPlace

_SCALES = {
    "bitsandbytes": (
        ".absmax",
        ".quant_map",
        ".nested_absmax",
        ".nested_quant_map",
        ".SCB",
        ".weight_format",
    ),
    "gptq": (".qzeros", ".scales", ".g_idx"),
    "awq": (".qzeros", ".scales"),
    "fp8": (".weight_scale_inv", ".weight_scale", ".input_scale", ".activation_scale"),
    "mxfp4": ("_scales",),
    "mxfp8": ("_scales", ".weight_scale_inv"),
}
"""Ends of the names of tensors that hold no weights, by method."""
_WORD = 32


def weights_in(name: str, place: TensorPlace, own: Quantised | None) -> int:
    """The weights that a tensor of a folder stands for; `own`: how the folder's are quantised."""
    if own is None:
        return place.elements
    if name.endswith(_SCALES.get(own.method, ())) or ".quant_state." in name:
        return 0
    return place.elements * _in_a_number(name, place, own)


def _in_a_number(name: str, place: TensorPlace, own: Quantised) -> int:
    """How many weights lie in one stored number."""
    match own.method:
        case "mxfp4" if name.endswith("_blocks"):
            return 2
        case "bitsandbytes" if place.dtype == "U8" and name.endswith(".weight"):
            return 2
        case "gptq" | "awq" if name.endswith(".qweight"):
            return _WORD // (own.bits or 4)
        case _:
            return 1
