"""The memory of one sequence, written at positions that are told as tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache as TransformersCache

from app.library.fixed_memory import placed_room
from app.models.cache import FixedLayer, SequenceCache


class Aim:
    """Where the layers of one memory write, and how much of it they show."""

    def __init__(self) -> None:
        self.places: Tensor | None = None
        """[w]; None for behind what is held."""
        self.keys = 0

    @contextmanager
    def at(self, places: Tensor, keys: int) -> Iterator[None]:
        """While it lasts, passes write at these places, [w], and sum over so many keys."""
        self.places, self.keys = places, keys
        try:
            yield
        finally:
            self.places, self.keys = None, 0


class PlacedLayer(FixedLayer):
    """A layer's keys and values, [1, heads, room, size], that a pass appends to as ever, or writes
    where they are aimed.

    It begins as zeros: what no one has written yet is hidden by a mask, but must be a number.
    """

    def __init__(self, room: int, aim: Aim) -> None:
        super().__init__(room)
        self.aim = aim

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Takes the memory, once the shapes are known."""
        super().lazy_initialization(key_states, value_states)
        self.clear()
        self._written = self.keys.shape[2]

    def clear(self) -> None:
        """Holds nothing, and zeros."""
        self.length = 0
        if self.is_initialized:
            self.keys.zero_()
            self.values.zero_()

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Writes keys and values; all that are held, or as many as a pass sums over."""
        places = self.aim.places
        if places is None:
            return super().update(key_states, value_states)
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.keys.index_copy_(2, places, key_states)
        self.values.index_copy_(2, places, value_states)
        return self.padded()

    def padded(self) -> tuple[Tensor, Tensor]:
        """Keys and values that a pass sums over; what it may not see is to be hidden."""
        if self.aim.places is None:
            return super().padded()
        return self.keys[:, :, : self.aim.keys], self.values[:, :, : self.aim.keys]


class PlacedLayers:
    """Every layer of a model, for one sequence: what a pass of fixed shape writes to."""

    def __init__(self, count: int, capacity: int) -> None:
        self.room = placed_room(capacity)
        """Tokens that the memory holds, padded rows included."""
        self._aim = Aim()
        self.layers = [PlacedLayer(self.room, self._aim) for _ in range(count)]
        self.inner = TransformersCache(layers=self.layers)

    @property
    def byte_count(self) -> int:
        """Bytes of all keys and values."""
        held = [layer for layer in self.layers if layer.is_initialized]
        tensors = [tensor for layer in held for tensor in (layer.keys, layer.values)]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    @torch.inference_mode()
    def clear(self) -> None:
        """Holds nothing, as at first."""
        for layer in self.layers:
            layer.clear()

    @contextmanager
    def aimed(
        self, places: Tensor, keys: int, *, depth: int | None = None
    ) -> Iterator[SequenceCache]:
        """The layers, or the first `depth` of them, as a cache that writes at these places, [w],
        while it lasts.
        """
        inner = self.inner if depth is None else TransformersCache(layers=self.layers[:depth])
        with self._aim.at(places, keys):
            yield SequenceCache(inner, fixed=True, depth=depth)

    def set_length(self, length: int) -> None:
        """How many tokens are held now."""
        for layer in self.layers:
            layer.length = length
