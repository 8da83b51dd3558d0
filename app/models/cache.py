"""Keys and values in memory that is taken once, at opening, so that rewinding is a number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from transformers.cache_utils import Cache as TransformersCache
from transformers.cache_utils import CacheLayerMixin, DynamicCache

from app.library.memory import CACHE_STEP

STEP = CACHE_STEP
"""Keys are padded to a multiple of so many where the sums must not depend on how many there are."""


class FixedLayer(CacheLayerMixin):  # type: ignore[misc]
    """One layer's keys and values, [batch, heads, capacity, size], filled from the front.

    Every layer keeps all positions, also those outside a sliding window: the attention mask hides
    them, and a rejected token can be taken back past the window.
    """

    is_sliding = False
    is_croppable = True

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._capacity = -(-capacity // STEP) * STEP
        self._written = 0
        self.length = 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Takes the memory, once the shapes are known."""
        self.device = key_states.device
        self.keys = key_states.new_empty(
            (*key_states.shape[:2], self._capacity, key_states.shape[3])
        )
        self.values = value_states.new_empty(
            (*value_states.shape[:2], self._capacity, value_states.shape[3])
        )
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Appends keys and values, and returns all that are held."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start, self.length = self.length, self.length + key_states.shape[-2]
        self.keys[:, :, start : self.length] = key_states
        self.values[:, :, start : self.length] = value_states
        self._written = max(self._written, self.length)
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def padded(self) -> tuple[Tensor, Tensor]:
        """Keys and values up to a multiple of STEP; what lies behind the length is to be hidden."""
        end = -(-self.length // STEP) * STEP
        if end > self._written:  # memory that no one has written to may hold anything
            for held in (self.keys, self.values):
                held[:, :, self._written : end] = 0
            self._written = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length of what a mask has to cover, and its offset."""
        return self.length + query_length, 0

    def get_seq_length(self) -> int:
        """Tokens held."""
        return self.length

    def get_max_length(self) -> int:
        """No limit of its own: the session keeps to the capacity."""
        return -1

    def crop(self, tokens_to_remove: int) -> None:
        """Forgets the last tokens; the count is negative, as in transformers."""
        self.length -= abs(tokens_to_remove)

    def keep(self, start: int, places: Tensor) -> None:
        """Of what lies behind the first `start` tokens keeps these places [kept] only, in order."""
        end = start + len(places)
        if self.is_initialized:
            for held in (self.keys, self.values):
                held[:, :, start:end] = held[:, :, start + places]
        self.length = end


class SequenceCache:
    """The cache of one sequence, whatever kind its model needs."""

    def __init__(self, inner: TransformersCache, *, fixed: bool, depth: int | None = None) -> None:
        self.inner = inner
        self.fixed = fixed
        self.depth = depth
        """How many of the model's layers a pass goes through; None for all."""
        self._length = 0

    @property
    def length(self) -> int:
        """Tokens held."""
        return self._length

    @property
    def byte_count(self) -> int:
        """Bytes of all tensors held."""
        tensors = [
            tensor
            for layer in self.inner.layers
            for tensor in vars(layer).values()
            if isinstance(tensor, Tensor)
        ]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    def advance(self, tokens: int) -> None:
        """Notes that a pass has appended tokens."""
        self._length += tokens

    def crop(self, length: int) -> None:
        """Forgets every token behind the first `length`."""
        if length < self._length:
            self.inner.crop(length - self._length)
            self._length = length

    def keep(self, start: int, places: Tensor) -> None:
        """Of what lies behind the first `start` tokens keeps these places [kept] only, in order."""
        for layer in self.inner.layers:
            layer.keep(start, places)
        self._length = start + len(places)

    def lend(self, depth: int) -> LentCache:
        """A cache of the first `depth` layers, which holds what this one holds now."""
        return LentCache(self, depth)


class LentCache(SequenceCache):
    """The first layers of another cache, for passes that go no deeper.

    They write behind what the owner holds, where the owner's next pass will write anyway; between
    them the owner finds its layers as it left them. It lasts until the owner changes.
    """

    def __init__(self, owner: SequenceCache, depth: int) -> None:
        super().__init__(
            TransformersCache(layers=owner.inner.layers[:depth]), fixed=True, depth=depth
        )
        self._owned = self._length = owner.length

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """While it lasts, the layers are as long as this cache; then as the owner has them."""
        self._set(self._length)
        try:
            yield
        finally:
            self._set(self._owned)

    def _set(self, length: int) -> None:
        for layer in self.inner.layers:
            layer.length = length


def layer_kinds(config: Any) -> set[str]:
    """What the layers of a model are, as transformers names them."""
    text = config.get_text_config(decoder=True)
    return set(getattr(text, "layer_types", None) or ["full_attention"])


def open_cache(config: Any, capacity: int) -> SequenceCache:
    """An empty cache for the model of this configuration.

    Attention layers get fixed memory. A model with states of another kind (recurrent, convolution)
    gets the cache that transformers makes for it, which can rarely be rewound.
    """
    text = config.get_text_config(decoder=True)
    if layer_kinds(config) <= {
        "full_attention",
        "sliding_attention",
        "chunked_attention",
        "attention",
    }:
        layers = [FixedLayer(capacity) for _ in range(text.num_hidden_layers)]
        return SequenceCache(TransformersCache(layers=layers), fixed=True)
    return SequenceCache(DynamicCache(config=text), fixed=False)
