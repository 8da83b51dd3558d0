"""A head that goes on from its own features, at every place of many texts at once.

EAGLE-3's training-time test (Li et al. 2025, arXiv 2503.01840): what a head meets when it drafts,
it meets when it learns. A draft that starts at p is fed, at depth j, the head's own feature of
depth j - 1, and the embedding of token p + j; it sees the keys that target features made, up to p,
and its own ones of depths 2 to j. So it does in a session, which drops its own keys each round.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from app.models.attention import rotate
from app.models.draft_head import DraftHead
from app.models.rotary_table import RotaryTable

_Vectors = tuple[Tensor, Tensor]
"""Keys and values: [rows, length, shared heads, size] each."""


def unrolled(
    head: DraftHead, rotary: RotaryTable, embeddings: Tensor, features: Tensor, *, depth: int
) -> Iterator[Tensor]:
    """The predicted features of depths 1 to `depth`, each [rows, length, hidden].

    `embeddings` and `features` [rows, length, hidden] are of the texts' tokens. Place p of depth j
    holds the feature of token p + j; the last j places hold nothing of use.
    """
    length = features.shape[1]
    known: _Vectors | None = None
    own: list[_Vectors] = []
    for step in range(depth):
        shifted = functional.pad(embeddings[:, step + 1 :], (0, 0, 0, min(step + 1, length)))
        x = head.joined(shifted, features)
        query, key, value = head.vectors(x)
        turning = rotary.between(step, step + length, query.dtype)
        query, key = rotate(query, *turning), rotate(key, *turning)
        if known is None:
            known = key, value
        else:
            own.append((key, value))
        features = head.feature(x, attended(query, known, own, head.scale))
        yield features


def attended(query: Tensor, known: _Vectors, own: list[_Vectors], scale: float) -> Tensor:
    """What each place of query [rows, length, heads, size] gathers, [rows, length, heads x size].

    Place p sees the places up to p of `known`, and place p of each of `own`.
    """
    keys, values = (one.transpose(1, 2) for one in known)
    if not own:
        answer = functional.scaled_dot_product_attention(
            query.transpose(1, 2), keys, values, is_causal=True, scale=scale, enable_gqa=True
        )
        return answer.transpose(1, 2).flatten(2)
    rows, length, heads, size = query.shape
    shared = keys.shape[1]
    # Heads that share keys become one more dimension, so that no key is copied for them.
    folded = (
        (query * scale).view(rows, length, shared, heads // shared, size).permute(0, 2, 3, 1, 4)
    )
    whole = (rows, shared, -1, length)
    scores = (folded.reshape(rows, shared, -1, size) @ keys.transpose(2, 3)).view(*whole, length)
    scores = scores + _later(length, scores)
    mine = [(folded * key.transpose(1, 2)[:, :, None]).sum(dim=-1, keepdim=True) for key, _ in own]
    weights = torch.cat([scores, *mine], dim=-1).softmax(dim=-1).to(values.dtype)
    far = weights[..., :length].reshape(rows, shared, -1, length) @ values
    answer = far.view(*whole, size)
    for place, (_, value) in enumerate(own):
        near = weights[..., length + place : length + place + 1]
        answer = answer + near * value.transpose(1, 2)[:, :, None]
    return answer.permute(0, 3, 1, 2, 4).reshape(rows, length, heads * size)


def _later(length: int, like: Tensor) -> Tensor:
    """Minus infinity where a place would see a later one: [length, length]."""
    return like.new_full((length, length), float("-inf")).triu(1)
