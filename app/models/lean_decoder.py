"""The forward pass of Llama and its kin, without what a general library has to ask first.

It reads the weights of a transformers model, whose linear layers may be packed, and computes what
that model computes: Llama, Mistral, Qwen2 and Qwen3 differ in biases, in the norms of queries and
keys, and in which layers see a window only. On a CPU, where a pass of one row takes 10 ms, asking
costs as much; on a card each layer costs half the kernels.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import functional

from app.models.attention import FoldedMasks, Masks, Placed, RowMasks, attend, rotate
from app.models.cache import STEP, FixedLayer, SequenceCache
from app.models.int8_linear import Int8Linear
from app.models.lean_layers import LeanLayer, layer_of, norm_of
from app.models.rotary_table import RotaryTable

_FEW = 8
"""Some processors multiply fewer rows than 4 in another order, and so round them otherwise."""


class LeanDecoder:
    """A decoder over the weights of a model that is `known`, for one sequence."""

    def __init__(self, inner: Any) -> None:
        self._embeddings = inner.model.embed_tokens
        self._rotary = RotaryTable(inner.model.rotary_emb)
        self._layers = [layer_of(layer, inner.config) for layer in inner.model.layers]
        self._norm = norm_of(inner.model.norm)
        self._output = inner.lm_head
        # Whole numbers are summed exactly at any width of a pass; so that attention hardly rounds
        # a row otherwise in one than in another, it sums over as many keys in each, for no fewer
        # rows than a few.
        self.steady = isinstance(self._output, Int8Linear)
        self._heads = int(inner.config.num_attention_heads)
        self._shared = int(inner.config.num_key_value_heads)
        self._least_rows = -(-_FEW * self._shared // self._heads)

    def states(self, ids: Tensor, cache: SequenceCache) -> Tensor:
        """Feeds ids [n] behind the cache; the states behind the final norm, [n, hidden]: of the
        first layers only, where the cache has no more.
        """
        return self.states_and_inputs(ids, cache)[0]

    def states_and_inputs(
        self,
        ids: Tensor,
        cache: SequenceCache,
        *,
        layers: tuple[int, ...] = (),
        placed: Placed | None = None,
    ) -> tuple[Tensor, dict[int, Tensor]]:
        """As `states`, where rows may be `placed` otherwise than one behind the other; and what
        went into each of these layers (counted from 0), [n, hidden].
        """
        inputs: dict[int, Tensor] = {}
        start, end = cache.length, cache.length + len(ids)
        x = self._embeddings(ids)
        masks: RowMasks
        if placed is None:
            cosines, sines = self._rotary.between(start, end, x.dtype)
            masks = Masks(start, end, x, keys=self.keys(end))
        else:
            cosines, sines = self._rotary.at(placed.positions, placed.end, x.dtype)
            masks = placed.masks
        layouts = FoldedMasks()
        pairs = zip(self._layers[: cache.depth], cache.inner.layers, strict=True)
        for number, (layer, held) in enumerate(pairs):
            if number in layers:
                inputs[number] = x
            turning, value = layer.read(layer.before(x))
            turned = rotate(turning, cosines, sines)
            attended = self._attend(layer, held, turned, value, masks, layouts)
            x = layer.out.plus(attended, x)
            y = layer.between(x)
            gate, up = layer.gate_and_up(y)
            x = layer.down.plus(functional.silu(gate) * up, x)
        return self._norm(x), inputs

    def keys(self, end: int) -> int | None:
        """How many keys attention sums over where `end` are held; None for just those."""
        return -(-end // STEP) * STEP if self.steady else None

    def logits(self, states: Tensor) -> Tensor:
        """The logits [rows, width] of states [rows, hidden]."""
        answer: Tensor = self._output(states)
        return answer

    def _attend(
        self,
        layer: LeanLayer,
        held: FixedLayer,
        turned: Tensor,
        value: Tensor,
        masks: RowMasks,
        layouts: FoldedMasks,
    ) -> Tensor:
        """What each row gathers from the rows before it, [n, heads x size]: of queries and keys,
        turned [n, heads + shared, size], and values [n, shared, size].
        """
        key = turned[:, self._heads :]
        keys, values = held.update(key.transpose(0, 1)[None], value.transpose(0, 1)[None])
        if self.steady:
            keys, values = held.padded()
        query, mask = turned[:, : self._heads], masks.of(layer.window)
        rows = query.shape[0]
        missing = self._least_rows - rows
        if self.steady and missing > 0:
            query = functional.pad(query, (0, 0, 0, 0, 0, missing))
            mask = None if mask is None else functional.pad(mask, (0, 0, 0, missing))
        found = attend(query, keys, values, mask=mask, scale=layer.scale, layouts=layouts)
        return found[:rows]
