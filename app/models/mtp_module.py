"""One module for multi-token prediction: a decoder layer of its target's kind, and what joins.

DeepSeek-V3 (arXiv 2412.19437, section 2.2): h' = Block(W [norm(embedding of t + 1); norm(h of t)])
and the target's own output rows tell token t + 2 from norm(h').
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


class MtpModule(nn.Module):
    """The parts of one module; rotation, cache and mask are handed to its block."""

    def __init__(
        self, block: nn.Module, norm: Callable[[], nn.Module], hidden: int, *, hidden_first: bool
    ) -> None:
        super().__init__()
        self.embedding_norm = norm()
        self.feature_norm = norm()
        self.joining = nn.Linear(2 * hidden, hidden, bias=False)
        self.block = block
        self.norm = norm()
        self._hidden_first = hidden_first

    def joined(self, embeddings: Tensor, features: Tensor) -> Tensor:
        """The block's input [n, hidden] from embeddings of tokens t + 1 and features of t."""
        embeddings, features = self.embedding_norm(embeddings), self.feature_norm(features)
        parts = [features, embeddings] if self._hidden_first else [embeddings, features]
        answer: Tensor = self.joining(torch.cat(parts, dim=-1))
        return answer
