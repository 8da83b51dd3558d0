"""Do the rows of a pass know each other inside a layer? Found with rows made for it.

A text that is read once may not bring the numbers that couple rows: LLM.int8 treats a column apart
as soon as any row has a large number in it (Dettmers et al. 2022, arXiv 2208.07339, section 3), and
a scale over a whole tensor follows its largest number. So each kind of linear layer is given one
row with small companions, and the same row with huge ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

_COMPANIONS = 4
_SMALL, _HUGE = 0.01, 1000.0
"""Sizes of the companions, beside a row whose numbers are about 1; also fp16 holds such."""


def coupling_layer(inner: nn.Module, dtype: torch.dtype) -> tuple[str, float] | None:
    """A kind of linear layer that lets a row change with its companions, and by how much.

    The model's layers are given numbers of type `dtype`; None if none of them couples rows.
    """
    for layer in _one_of_each_kind(inner):
        alone, beside = _first_row(layer, dtype, _SMALL), _first_row(layer, dtype, _HUGE)
        if not torch.equal(alone, beside):
            return type(layer).__name__, float((alone.float() - beside.float()).abs().max())
    return None


def _one_of_each_kind(inner: nn.Module) -> Iterator[Any]:
    """The first of each class of linear layers; parts of a fused layer are no layers."""
    seen: set[type] = set()
    for module in inner.modules():
        linear = isinstance(getattr(module, "in_features", None), int)
        if linear and type(module) not in seen and next(module.children(), None) is None:
            seen.add(type(module))
            yield module


@torch.inference_mode()
def _first_row(layer: Any, dtype: torch.dtype, size: float) -> Tensor:
    """What a layer answers at the first of several rows, the others being of this size."""
    numbers = torch.Generator().manual_seed(0)
    rows = torch.randn(1 + _COMPANIONS, layer.in_features, generator=numbers)
    rows[1:] *= size
    answer: Tensor = layer(rows[None].to(_device(layer), dtype))
    return answer[0, 0].cpu()


def _device(layer: nn.Module) -> torch.device:
    """Where a layer reads from."""
    held = next(layer.parameters(), None)
    return next(layer.buffers()).device if held is None else held.device
