"""Attention of transformers' models in passes of fixed shape, without a copy of what heads share.

With a mask, the library copies keys and values for every head that shares them, in each layer and
over all keys that a pass sums over. Here those heads become rows of one head instead.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from torch import Tensor
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from app.models.attention import FoldedMasks, attend_folded

_MOST_ROWS = 64
"""A mask as large as the folded queries of more rows would take too much."""
_WITHOUT_EFFECT = frozenset(
    ("is_causal", "sliding_window", "position_ids", "cache_position", "use_cache", "return_dict")
)
"""What the library's own function is told and ignores where there is a mask."""


class _Active(threading.local):
    """Of a thread: the masks of the pass that it computes, while that is one of fixed shape."""

    masks: FoldedMasks | None = None


_active = _Active()


@contextmanager
def shared_keys() -> Iterator[None]:
    """While it lasts, passes of this thread attend so, where a layer asks for nothing else."""
    _put_in_place()
    before, _active.masks = _active.masks, FoldedMasks()
    try:
        yield
    finally:
        _active.masks = before


@cache
def _put_in_place() -> None:
    """From now on the library's models ask here first; outside such passes nothing changes."""
    ALL_ATTENTION_FUNCTIONS["sdpa"] = _attention


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    dropout: float = 0.0,
    scaling: float | None = None,
    **told: Any,
) -> tuple[Tensor, None]:
    """As `sdpa_attention_forward`: of query [1, heads, n, size] to [1, n, heads, size]."""
    masks = _active.masks
    mask = attention_mask
    if masks is None or mask is None or dropout or not _fits(query, key, value, mask, told):
        answer: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, mask, dropout=dropout, scaling=scaling, **told
        )
        return answer
    rows = query[0].transpose(0, 1)
    found = attend_folded(rows, key, value, mask[0, 0], scaling, masks)
    return found.view(1, *rows.shape), None


def _fits(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, told: dict[str, Any]) -> bool:
    """Whether heads share keys, and nothing is asked for but to scale, mask and sum."""
    asked = {name for name, what in told.items() if what is not None}
    return (
        len(query) == len(key) == 1
        and query.shape[2] <= _MOST_ROWS
        and query.shape[1] > key.shape[1]
        and query.shape[1] % key.shape[1] == 0
        and query.shape[3] == key.shape[3] == value.shape[3]
        and mask.shape == (1, 1, query.shape[2], key.shape[2])
        and asked <= _WITHOUT_EFFECT
    )
