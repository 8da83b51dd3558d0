"""How much memory the weights take that a pass of one row has to read."""

from __future__ import annotations

from typing import Any

from torch import Tensor


def read_bytes(inner: Any) -> int:
    """Bytes of weights that a pass of one row reads of a model whose layers were not packed.

    All weights with the scales of quantised ones, each once. Of the table of embeddings a pass
    reads one row, so that it counts only where it is the output layer too.
    """
    table = inner.get_input_embeddings().weight
    whole = sum(map(_held, inner.parameters()))
    return whole - (0 if inner.get_output_embeddings().weight is table else _held(table))


def _held(weight: Tensor) -> int:
    """Bytes of a weight, and of the scales that bitsandbytes keeps beside it."""
    scales, state = 0, getattr(weight, "quant_state", None)
    while state is not None:
        scales += state.absmax.numel() * state.absmax.element_size()
        state = state.state2
    return weight.numel() * weight.element_size() + scales
