"""Many sequences read side by side: a token of each in one pass, so that weights are fetched once.

For writing much text with one model. Each row has its own length and begins anew when its sequence
has ended; nobody waits for the longest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache as TransformersCache
from transformers.cache_utils import CacheLayerMixin

from app.models.exhausted import memory_guard
from app.models.language_model import LanguageModel
from app.models.machine import on_device


class SideBySide:
    """`rows` sequences of at most `capacity` tokens, read by one model of the llama kind."""

    def __init__(self, model: LanguageModel, rows: int, capacity: int) -> None:
        self._model = model
        self._capacity = capacity
        self._layers: list[_RowsLayer] = []
        self._lengths = torch.zeros(rows, dtype=torch.long, device=model.device)
        self._longest = 0

    @torch.inference_mode()
    def begin(self, row: int, ids: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Starts a row with these ids; the logits [1, width] behind the last and all features.

        Raises Problem when the device's memory is exhausted.
        """
        model = self._model
        cache = model.new_cache(len(ids))
        fed = on_device(ids, torch.long, model.device)
        logits, features = model.forward_with_features(fed, cache, 1)
        self._take(row, cache.inner.layers, len(ids))
        self._lengths[row] = len(ids)
        self._longest = int(self._lengths.max())
        return logits, features

    @torch.inference_mode()
    def step(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Feeds one id to every row, [rows]; logits [rows, width] and features [rows, hidden].

        Raises Problem when the device's memory is exhausted.
        """
        self._longest = min(self._longest + 1, self._capacity)
        seen = torch.arange(self._longest, device=ids.device)[None] <= self._lengths[:, None]
        for layer in self._layers:
            layer.aim(self._lengths, self._longest)
        with memory_guard(self._model.name):
            logits, features = self._model.forward_side_by_side(
                ids,
                TransformersCache(layers=self._layers),
                places=self._lengths,
                seen=seen,
            )
        self._lengths += 1
        return logits, features

    @torch.inference_mode()
    def rest(self, row: int) -> None:
        """Forgets a row's sequence; it goes on reading from its first place, for no one."""
        self._lengths[row] = 0
        self._longest = int(self._lengths.max())

    def _take(self, row: int, layers: Sequence[Any], length: int) -> None:
        """Copies the keys and values of one sequence [1, heads, length, size] into a row."""
        if not self._layers:
            rows = len(self._lengths)
            self._layers = [_RowsLayer(layer, rows, self._capacity) for layer in layers]
        for mine, theirs in zip(self._layers, layers, strict=True):
            mine.keys[row, :, :length] = theirs.keys[0, :, :length]
            mine.values[row, :, :length] = theirs.values[0, :, :length]


class _RowsLayer(CacheLayerMixin):  # type: ignore[misc]
    """One layer's keys and values, [rows, heads, capacity, size]; each row is filled on its own."""

    is_sliding = False

    def __init__(self, like: Any, rows: int, capacity: int) -> None:
        super().__init__()
        heads, size = like.keys.shape[1], like.keys.shape[3]
        # Zeros: what no row may see is multiplied by 0, and garbage might be infinite.
        self.keys = like.keys.new_zeros((rows, heads, capacity, size))
        self.values = like.values.new_zeros((rows, heads, capacity, size))
        self.is_initialized = True
        self._rows = torch.arange(rows, device=self.keys.device)
        self._places = self._rows
        self._longest = 0

    def aim(self, places: Tensor, longest: int) -> None:
        """Where the next keys and values go, [rows], and how many any row will hold then."""
        self._places, self._longest = places, longest

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing: the memory was taken at once."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Writes a token of each row, [rows, heads, 1, size], and returns what any row holds."""
        self.keys[self._rows, :, self._places] = key_states[:, :, 0]
        self.values[self._rows, :, self._places] = value_states[:, :, 0]
        return self.keys[:, :, : self._longest], self.values[:, :, : self._longest]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length of what a mask has to cover, and its offset."""
        return self._longest, 0

    def get_seq_length(self) -> int:
        """Tokens held by the longest row."""
        return self._longest

    def get_max_length(self) -> int:
        """No limit of its own."""
        return -1
