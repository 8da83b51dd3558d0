"""Linear layers whose weights lie in memory as oneDNN's kernels for a CPU read them.

A plain linear layer hands its weights to the kernel row by row: at few rows that wastes most of
the memory's speed, and in fp32 a pass of three rows costs twice a pass of one. The operators that
arrange weights beforehand are private to torch, so they are tried before anything rests on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from app.models.int8_linear import INT8, Int8Linear, apart_in_int8, slowness_of_int8
from app.models.mapped_memory import let_go, return_free_memory

PACKED = "prepacked for oneDNN"
"""What the linear layers are called in reports once they are packed."""

_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.int8: 1e-5}
"""How far a packed layer may round from a plain one, as a share of the largest answer."""
_SLOW = 10.0
"""From so many times a plain layer's time on, 8 bits serve nobody; reference kernels take 100s."""


Advance = Callable[[int], None]
"""Told how many layers are packed next; it may raise to end the packing."""


def unwatched(layers: int) -> None:
    """Lets the packing go on."""


class PackedLinear(nn.Module):
    """Linear layers without a gradient, packed as one below the other; answers as they do."""

    packed: Tensor
    bias: Tensor | None

    def __init__(self, plain: Sequence[nn.Linear], dtype: torch.dtype) -> None:
        super().__init__()
        self.in_features = plain[0].in_features
        self.out_features = sum(layer.out_features for layer in plain)
        given: list[Tensor | None] = [layer.bias for layer in plain]
        biases = [bias.to(dtype) for bias in given if bias is not None]
        with torch.no_grad():
            bias = torch.cat(biases) if biases else None
            weight = _stacked([layer.weight.detach().to(dtype) for layer in plain])
            packed = torch.ops.mkldnn._reorder_linear_weight(weight, None)
        self.register_buffer("packed", packed, persistent=False)
        self.register_buffer("bias", bias, persistent=False)

    @property
    def weight(self) -> Tensor:
        """The weights as a plain layer has them, [out, in]: a copy, made at every call."""
        return self.packed.to_dense()

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in] to [..., out]."""
        return _pointwise(x, self.packed, self.bias, "none", [], "")

    def plus(self, x: Tensor, other: Tensor) -> Tensor:
        """What `forward` answers plus other [..., out], in the same kernel."""
        return _pointwise_binary(x, other, self.packed, self.bias, "add")


def packed(plain: Sequence[nn.Linear], held: torch.dtype) -> PackedLinear | Int8Linear:
    """The layers as one, their weights held in this type."""
    return Int8Linear(plain) if held == torch.int8 else PackedLinear(plain, held)


def computing(held: torch.dtype) -> torch.dtype:
    """What a model computes in whose linear layers are held in this type."""
    return held if held.is_floating_point else torch.float32


def pack(model: nn.Module, held: torch.dtype, advance: Advance = unwatched) -> str:
    """Packs every plain linear layer of a model on a CPU; returns what its kernels are called.

    The weights of these layers come out in `held`, all others in what that computes in. One layer
    at a time, and what it was made from is let go of before the next: never two copies. An output
    layer that shares the table of embeddings gets weights of its own, the table stays.
    """
    hindrance = why_not_packed(held)
    if hindrance is None:
        _pack_layers(model, held, advance)
    _convert(model, computing(held), advance)
    if hindrance is not None:
        return f"plain, as {hindrance}"
    return INT8 if held == torch.int8 else PACKED


def convert_tables(model: nn.Module, dtype: torch.dtype, advance: Advance) -> None:
    """Brings the embeddings into `dtype`: to be done before anything else is in memory, as the
    largest matrix is in memory twice while it is converted.
    """
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            _convert(module, dtype, advance)


def _pack_layers(model: nn.Module, held: torch.dtype, advance: Advance) -> None:
    plain = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child) is nn.Linear
    ]
    while plain:
        advance(1)
        parent, name, child = plain.pop()
        setattr(parent, name, packed([child], held))
        let_go(child.weight)
        del child
        return_free_memory()


def _convert(model: nn.Module, dtype: torch.dtype, advance: Advance) -> None:
    """Brings the weights that are left into `dtype`: embeddings, norms, experts."""
    for parameter in model.parameters():
        if parameter.is_floating_point() and parameter.dtype != dtype:
            advance(0)
            stored = parameter.data
            parameter.data = stored.to(dtype)
            let_go(stored)
            del stored
            return_free_memory()


@cache
def why_not_packed(held: torch.dtype) -> str | None:
    """Why layers cannot be held in this type here, or None: found by trying it once."""
    if held not in _TOLERANCE:
        return f"{held} has no packed kernel"
    try:
        if held == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            return "this processor has no instructions for bf16"
        apart = apart_in_int8() if held == torch.int8 else _apart(held)
    except (AttributeError, RuntimeError, TypeError, NotImplementedError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return f"this torch cannot pack weights ({reason})"
    if apart > _TOLERANCE[held]:
        return f"packed layers answer differently ({apart:.2g})"
    slowness = slowness_of_int8() if held == torch.int8 else 0.0
    if slowness > _SLOW:
        return f"a layer takes {slowness:.0f} times as long here: oneDNN has no quick kernel for it"
    return None


@torch.no_grad()
def _apart(dtype: torch.dtype) -> float:
    """The largest difference of a packed and a plain layer in all they do, as a share."""
    numbers = torch.Generator().manual_seed(0)
    plain = nn.Linear(64, 48).to(dtype)
    plain.weight.copy_(torch.randn(48, 64, generator=numbers))
    plain.bias.copy_(torch.randn(48, generator=numbers))
    x, other = torch.randn(3, 64, generator=numbers), torch.randn(3, 48, generator=numbers)
    x, other = x.to(dtype), other.to(dtype)
    packed, y = PackedLinear([plain], dtype), plain(x).float()
    pairs = (
        (packed(x), y),
        (packed.plus(x, other), y + other),
        (packed.weight, plain.weight),
    )
    return max(float((mine.float() - due).abs().max() / due.abs().max()) for mine, due in pairs)


def _stacked(weights: list[Tensor]) -> Tensor:
    return torch.cat(weights) if len(weights) > 1 else weights[0]


def _pointwise(*arguments: Any) -> Tensor:
    answer: Tensor = torch.ops.mkldnn._linear_pointwise.default(*arguments)
    return answer


def _pointwise_binary(*arguments: Any) -> Tensor:
    answer: Tensor = torch.ops.mkldnn._linear_pointwise.binary(*arguments)
    return answer
