"""A draft head: one decoder layer that guesses from what its target already computed.

EAGLE (Li et al. 2024, arXiv 2401.15077, section 3): from the target's feature of token t and the
embedding of token t + 1 it predicts the feature of token t + 1, from which the target's own output
rows tell token t + 2. Fed with its own feature and guess, it goes on. Here the output rows are
those of a reduced vocabulary, and the feature is normed as the target's is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from app.library.head_folder import TARGETS, HeadShape, no_head_for
from app.models.head_layer import HeadLayer


class DraftHead(HeadLayer):
    """The trained part; embeddings and output rows are the target's and are handed in.

    Attention is left to whoever uses it: a session has a cache, training a mask of its own.
    """

    def __init__(self, shape: HeadShape) -> None:
        super().__init__()
        self.shape, self.head_size = shape, shape.head_size
        hidden, size, biased = shape.hidden, shape.head_size, shape.biased
        self.fc = nn.Linear(2 * hidden, hidden, bias=False)
        self.input_norm = self._norm(hidden)
        self.q_proj = nn.Linear(hidden, shape.heads * size, bias=biased)
        self.k_proj = nn.Linear(hidden, shape.shared_heads * size, bias=biased)
        self.v_proj = nn.Linear(hidden, shape.shared_heads * size, bias=biased)
        self.q_norm = self._norm(size) if shape.normed else None
        self.k_norm = self._norm(size) if shape.normed else None
        self.o_proj = nn.Linear(shape.heads * size, hidden, bias=False)
        self.between_norm = self._norm(hidden)
        self.gate_proj = nn.Linear(hidden, shape.intermediate, bias=False)
        self.up_proj = nn.Linear(hidden, shape.intermediate, bias=False)
        self.down_proj = nn.Linear(shape.intermediate, hidden, bias=False)
        self.norm = self._norm(hidden)

    def first(self, features: Tensor) -> Tensor:
        """What is joined with an embedding, [..., hidden], from the target's features."""
        return features

    def joined(self, embeddings: Tensor, features: Tensor) -> Tensor:
        """The layer's input [..., hidden] from embeddings of tokens t + 1 and features of t."""
        answer: Tensor = self.fc(torch.cat([embeddings, features], dim=-1))
        return answer

    def read_from(self, x: Tensor) -> Tensor:
        """What queries, keys and values are made of, of the layer's input."""
        answer: Tensor = self.input_norm(x)
        return answer

    def feature(self, x: Tensor, attended: Tensor) -> Tensor:
        """The predicted feature [..., hidden] from the input and what its rows gathered."""
        answer: Tensor = self.norm(self.behind_layer(x, attended))
        return answer

    def _norm(self, size: int) -> nn.RMSNorm:
        return nn.RMSNorm(size, eps=self.shape.norm_epsilon)


def shape_for(inner: Any, vocabulary: int) -> HeadShape:
    """The shape of a head for this model. Raises Problem for a model of another kind."""
    refuse_kind(inner)
    config = inner.config
    attention = inner.model.layers[-1].self_attn
    return HeadShape(
        hidden=int(config.hidden_size),
        intermediate=int(config.intermediate_size),
        heads=int(config.num_attention_heads),
        shared_heads=int(config.num_key_value_heads),
        head_size=int(attention.head_dim),
        norm_epsilon=float(config.rms_norm_eps),
        biased=attention.q_proj.bias is not None,
        normed=hasattr(attention, "q_norm"),
        vocabulary=vocabulary,
    )


def refuse_kind(inner: Any) -> None:
    """Raises Problem for a target of a kind that no head can guess for."""
    if type(inner).__name__ not in TARGETS.values():
        raise no_head_for(inner.config.model_type)
