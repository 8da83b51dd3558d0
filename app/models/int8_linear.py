"""Linear layers held in 8 bits on a CPU: whole numbers are multiplied, by oneDNN's kernel.

Each row of the weights has a scale of its own, and so has each row of a pass: the largest number
of either becomes 127. A scale over all rows of a pass, as is usual, would let a row's answer
depend on the guesses after it (dynamic quantisation by row: LLM.int8, Dettmers et al. 2022, arXiv
2208.07339, section 2.2, "vector-wise"). The operators are private to torch, so they are tried.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

INT8 = "8-bit whole numbers, a scale for each row of a pass (oneDNN)"
"""What the linear layers are called in reports once they are held in 8 bits."""

_LARGEST = 127
_MIDDLE = 128
"""What is added to a pass's whole numbers: most processors multiply bytes without a sign by signed
ones, and oneDNN has nothing but its slow reference where both are signed. It takes it off again.
"""
_SMALLEST = torch.finfo(torch.float32).tiny
_ROWS = 1024
"""Rows of weights that are quantised at a time: their 32-bit copy is all that is held beside."""


class Int8Linear(nn.Module):
    """Linear layers without a gradient, in 8 bits, as one below the other; answers in fp32."""

    packed: Tensor
    scales: Tensor
    """What a step of each row of the weights is worth, [out]."""
    bias: Tensor | None

    def __init__(self, plain: Sequence[nn.Linear]) -> None:
        super().__init__()
        self.in_features = plain[0].in_features
        self.out_features = sum(layer.out_features for layer in plain)
        given: list[Tensor | None] = [layer.bias for layer in plain]
        biases = [bias.float() for bias in given if bias is not None]
        with torch.no_grad():
            bias = torch.cat(biases) if biases else None
            numbers, scales = _quantised_weights([layer.weight.detach() for layer in plain])
            packed = torch.ops.onednn.qlinear_prepack(numbers, None)
        self.register_buffer("packed", packed, persistent=False)
        self.register_buffer("scales", scales, persistent=False)
        self.register_buffer("bias", bias, persistent=False)
        self.register_buffer("zero", torch.zeros_like(scales, dtype=torch.int64), persistent=False)

    @property
    def weight(self) -> Tensor:
        """The weights as a plain layer has them, [out, in]: a copy, made at every call."""
        return self.packed.to_dense().t() * self.scales[:, None]

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in] in fp32 to [..., out]."""
        answer, steps = self._multiplied(x)
        return answer.mul_(steps) if self.bias is None else torch.addcmul(self.bias, answer, steps)

    def plus(self, x: Tensor, other: Tensor) -> Tensor:
        """What `forward` answers plus other [..., out]."""
        answer, steps = self._multiplied(x)
        sum_ = torch.addcmul(other, answer, steps)
        return sum_ if self.bias is None else sum_.add_(self.bias)

    def _multiplied(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The answer [..., out] in steps of x, and what a step of each row is worth, [..., 1]."""
        numbers, steps = quantised_by_row(x)
        read = (numbers.view(torch.uint8).add(_MIDDLE), 1.0, _MIDDLE)  # past 255 it begins at 0
        held = (self.packed, self.scales, self.zero)
        return _pointwise(*read, *held, None, 1.0, 0, torch.float32, "none", [], ""), steps


def linear_share(model: Any) -> float:
    """The share of a model's weights that lies in linear layers, its vocabulary left out."""
    ends = {id(model.get_input_embeddings()), id(model.get_output_embeddings())}
    vocabulary = {id(w) for m in model.modules() if id(m) in ends for w in m.parameters()}
    sizes: dict[int, int] = {
        id(w): w.numel() for w in model.parameters() if id(w) not in vocabulary
    }
    linear = {id(m.weight) for m in model.modules() if type(m) is nn.Linear} & set(sizes)
    return sum(sizes[weight] for weight in linear) / max(sum(sizes.values()), 1)


def quantised_by_row(x: Tensor) -> tuple[Tensor, Tensor]:
    """x [..., n] as whole numbers from -127 to 127, and what a step of each row is, [..., 1]."""
    steps = x.abs().amax(-1, keepdim=True).clamp_min_(_SMALLEST).div_(_LARGEST)
    return (x / steps).round_().to(torch.int8), steps


def _quantised_weights(weights: list[Tensor]) -> tuple[Tensor, Tensor]:
    """All rows of several weights: whole numbers [out, in], and each row's step, [out]."""
    parts = [part for weight in weights for part in torch.split(weight, _ROWS)]
    out = sum(len(part) for part in parts)
    numbers = torch.empty(out, weights[0].shape[1], dtype=torch.int8)
    scales = torch.empty(out)
    start = 0
    for part in parts:
        end = start + len(part)
        numbers[start:end], steps = quantised_by_row(part.float())
        scales[start:end] = steps[:, 0]
        start = end
    return numbers, scales


@torch.no_grad()
def apart_in_int8() -> float:
    """The largest difference of a layer in 8 bits and the same sums done exactly, as a share.

    The numbers are as large as they can be: a processor whose sums overflow would show it.
    """
    numbers = torch.Generator().manual_seed(0)
    plain = nn.Linear(256, 48)
    plain.weight.copy_(torch.randn(48, 256, generator=numbers).sign())
    plain.bias.copy_(torch.randn(48, generator=numbers))
    x, other = torch.randn(3, 256, generator=numbers), torch.randn(3, 48, generator=numbers)
    x[1:] = plain.weight[:2]
    held, (whole, steps) = Int8Linear([plain]), quantised_by_row(x)
    y = (whole.double() * steps) @ plain.weight.double().t() + plain.bias
    pairs = ((held(x), y), (held.plus(x, other), y + other), (held.weight, plain.weight))
    return max(float((mine.double() - due).abs().max() / due.abs().max()) for mine, due in pairs)


@torch.no_grad()
def slowness_of_int8() -> float:
    """How long a layer in 8 bits takes beside a plain one: at best, in the latter's time."""
    plain = nn.Linear(512, 512)
    held, x = Int8Linear([plain]), torch.ones(1, 512)

    def seconds(layer: nn.Module) -> float:
        start = time.perf_counter()
        layer(x)
        return time.perf_counter() - start

    return min(seconds(held) for _ in range(5)) / min(seconds(plain) for _ in range(5))


def _pointwise(*arguments: Any) -> Tensor:
    answer: Tensor = torch.ops.onednn.qlinear_pointwise.default(*arguments)
    return answer
