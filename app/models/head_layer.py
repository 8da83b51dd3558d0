"""The decoder layer that every draft head has; its parts are the head's own."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from torch import Tensor, nn
from torch.nn import functional


class HeadLayer(nn.Module, ABC):
    """What such a layer computes. Attention is left to whoever has the cache, or a mask."""

    head_size: int
    q_proj: nn.Linear
    k_proj: nn.Linear
    v_proj: nn.Linear
    q_norm: nn.RMSNorm | None
    k_norm: nn.RMSNorm | None
    o_proj: nn.Linear
    between_norm: nn.RMSNorm
    gate_proj: nn.Linear
    up_proj: nn.Linear
    down_proj: nn.Linear

    @property
    def scale(self) -> float:
        """What scores of attention are multiplied by."""
        return 1.0 / math.sqrt(self.head_size)

    @abstractmethod
    def read_from(self, x: Tensor) -> Tensor:
        """What queries, keys and values are made of, of the layer's input."""

    def vectors(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [..., heads, size], keys and values [..., shared heads, size], not yet turned."""
        y = self.read_from(x)
        query = self.q_proj(y).unflatten(-1, (-1, self.head_size))
        key = self.k_proj(y).unflatten(-1, (-1, self.head_size))
        value = self.v_proj(y).unflatten(-1, (-1, self.head_size))
        if self.q_norm is not None and self.k_norm is not None:
            query, key = self.q_norm(query), self.k_norm(key)
        return query, key, value

    def behind_layer(self, residual: Tensor, attended: Tensor) -> Tensor:
        """The layer's output [..., hidden], its feed-forward part included."""
        x = residual + self.o_proj(attended)
        y = self.between_norm(x)
        answer: Tensor = x + self.down_proj(functional.silu(self.gate_proj(y)) * self.up_proj(y))
        return answer
