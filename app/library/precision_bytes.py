"""How each precision holds numbers, in bytes."""

from __future__ import annotations

import msgspec

from app.run.settings import Precision

FOUR_BIT = ("nf4", "fp4")
"""Precisions whose passes of several rows make a linear layer's weights anew in 16 bits."""


class Kind(msgspec.Struct, frozen=True):
    """How a precision holds numbers, in bytes."""

    linear: float
    """A weight of a linear layer, with its share of the scales."""
    rest: int
    """Any other weight; activations and caches as well."""
    output: float = 0.0
    """A weight that a CPU packs apart for an output layer which shares the embeddings."""


_FOUR_BITS = 0.5 + 1 / 64 + 4 / (64 * 256)
"""A scale of 8 bits for 64 weights, and one of 32 for 256 of those."""
KINDS: dict[str, Kind] = {
    "fp32": Kind(4, 4, output=4),
    "bf16": Kind(2, 2, output=2),
    "fp16": Kind(2, 2),
    "int8": Kind(1, 4, output=1),
    "llm-int8": Kind(1, 2),
    "nf4": Kind(_FOUR_BITS, 2),
    "fp4": Kind(_FOUR_BITS, 2),
}
"""Keyed by the names of `Precision`, and of those to come."""


def number_bytes(precision: Precision) -> int:
    """Bytes of a number that is computed with."""
    return KINDS[precision].rest
