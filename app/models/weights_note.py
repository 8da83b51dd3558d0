"""What a model's weights are, in words: how they are held, and what they were before."""

from __future__ import annotations

from app.library.preflight import FolderFacts
from app.models.precision import PRECISIONS

_SAME = {"fp32": ("F32", "F16", "BF16"), "bf16": ("BF16",), "fp16": ("F16",)}
"""The types of a GGUF file whose numbers a precision holds as they are."""
_PLAIN = ("F32", "F16", "BF16")


def weights_note(precision: str, folder: FolderFacts) -> str:
    """How the weights of a folder are held in this precision, and what became of its numbers."""
    parts = [PRECISIONS.get(precision, "")]
    if folder.quantised is not None:
        parts.append(folder.quantised.words)
    if folder.requantised_from is not None:
        parts.append(_origin(precision, folder.requantised_from))
    return "; ".join(filter(None, parts))


def _origin(precision: str, was: str) -> str:
    """What became of the numbers of a GGUF file that was held as `was`."""
    if was in _SAME.get(precision, ()):
        return f"{was} as the file holds it: the same numbers"
    if precision == "fp32":
        return f"{was} widened to fp32: the same numbers that the file holds"
    if precision in _SAME:
        how = "rounded" if was in _PLAIN else "widened"
        return f"{was} {how} to {precision}: nearly the numbers that the file holds"
    how = "quantised" if was in _PLAIN else "re-quantised"
    return f"{how} from {was} to {precision.upper()}: not the weights that llama.cpp runs"
