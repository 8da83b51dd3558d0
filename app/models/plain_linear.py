"""Linear layers as their library made them, asked for what packed ones offer."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

_FOUR_BITS = "bitsandbytes.nn.modules", "Linear4bit"


class PlainLinear:
    """A linear layer with or without a bias, of torch or of bitsandbytes."""

    def __init__(self, layer: nn.Module) -> None:
        self._layer = layer

    def __call__(self, x: Tensor) -> Tensor:
        """x [n, in] to [n, out]."""
        answer: Tensor = self._layer(x)
        return answer

    def plus(self, x: Tensor, other: Tensor) -> Tensor:
        """What a call answers plus other [n, out]."""
        return other + self(x)


def is_plain(layer: Any) -> bool:
    """Whether a layer is one of torch's, or one of bitsandbytes in 4 bits."""
    kind = type(layer)
    return kind is nn.Linear or (kind.__module__, kind.__name__) == _FOUR_BITS
