"""The forward pass of Llama and its kin on a CPU, without what a general library has to ask first.

It reads the weights of a transformers model whose linear layers are packed, and computes what that
model computes: Llama, Mistral, Qwen2 and Qwen3 differ in biases, in the norms of queries and keys,
and in which layers see a window only. Where a pass of one row takes 10 ms, asking costs as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from app.library.rotary import STEADY
from app.models.attention import Masks, Placed, RowMasks, attend, rotate
from app.models.cache import STEP, FixedLayer, SequenceCache
from app.models.int8_linear import Int8Linear
from app.models.packed_linear import PackedLinear
from app.models.rotary_table import RotaryTable

_CLASSES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")

_FEW = 8
"""Some processors multiply fewer rows than 4 in another order, and so round them otherwise."""


@dataclass(frozen=True, slots=True)
class _Norm:
    """A root-mean-square norm."""

    weight: Tensor
    epsilon: float

    def __call__(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, self.weight.shape, self.weight, self.epsilon)


@dataclass(frozen=True, slots=True)
class _Layer:
    """The parts of a decoder layer; queries and keys have norms of their own in Qwen3 only."""

    before: _Norm
    read: PackedLinear | Int8Linear
    """Queries, keys and values."""
    query_norm: _Norm | None
    key_norm: _Norm | None
    out: PackedLinear | Int8Linear
    between: _Norm
    gate_and_up: PackedLinear | Int8Linear
    down: PackedLinear | Int8Linear
    window: int | None
    scale: float


class LeanDecoder:
    """A decoder over the packed and fused weights of a model that is `known`, for one sequence."""

    def __init__(self, inner: Any) -> None:
        self._embeddings = inner.model.embed_tokens
        self._rotary = RotaryTable(inner.model.rotary_emb)
        self._layers = [_layer(layer, inner.config) for layer in inner.model.layers]
        self._norm = _norm(inner.model.norm)
        self._output = inner.lm_head
        # Whole numbers are summed exactly at any width of a pass; so that attention hardly rounds
        # a row otherwise in one than in another, it sums over as many keys in each, for no fewer
        # rows than a few.
        self._steady = isinstance(self._output, Int8Linear)
        self._size = int(inner.model.layers[0].self_attn.head_dim)
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
        pairs = zip(self._layers[: cache.depth], cache.inner.layers, strict=True)
        for number, (layer, held) in enumerate(pairs):
            if number in layers:
                inputs[number] = x
            attended = self._attend(layer, held, layer.before(x), (cosines, sines), masks)
            x = layer.out.plus(attended, x)
            y = layer.between(x)
            gate, up = layer.gate_and_up(y).chunk(2, dim=-1)
            x = layer.down.plus(functional.silu(gate) * up, x)
        return self._norm(x), inputs

    def keys(self, end: int) -> int | None:
        """How many keys attention sums over where `end` are held; None for just those."""
        return -(-end // STEP) * STEP if self._steady else None

    def logits(self, states: Tensor) -> Tensor:
        """The logits [rows, width] of states [rows, hidden]."""
        answer: Tensor = self._output(states)
        return answer

    def _attend(
        self,
        layer: _Layer,
        held: FixedLayer,
        x: Tensor,
        rotation: tuple[Tensor, Tensor],
        masks: RowMasks,
    ) -> Tensor:
        """What each row [n, hidden] gathers from the rows before it, [n, heads x size]."""
        vectors = layer.read(x).view(len(x), -1, self._size)
        turning, value = vectors[:, : -self._shared], vectors[:, -self._shared :]
        if layer.query_norm is not None and layer.key_norm is not None:
            query, key = turning[:, : self._heads], turning[:, self._heads :]
            turning = torch.cat([layer.query_norm(query), layer.key_norm(key)], dim=1)
        turned = rotate(turning, *rotation)
        key = turned[:, self._heads :]
        keys, values = held.update(key.transpose(0, 1)[None], value.transpose(0, 1)[None])
        if self._steady:
            keys, values = held.padded()
        query, mask = turned[:, : self._heads], masks.of(layer.window)
        rows, missing = len(query), self._least_rows - len(query)
        if self._steady and missing > 0:
            query = functional.pad(query, (0, 0, 0, 0, 0, missing))
            mask = None if mask is None else functional.pad(mask, (0, 0, 0, missing))
        return attend(query, keys, values, mask=mask, scale=layer.scale)[:rows]


def known(inner: Any) -> bool:
    """Whether a model of transformers is of a kind that a lean decoder computes."""
    config = inner.config
    return (
        type(inner).__name__ in _CLASSES
        and config._attn_implementation == "sdpa"
        and config.hidden_act == "silu"
        and config.rope_parameters.get("rope_type") in STEADY
        and config.rope_parameters.get("partial_rotary_factor", 1.0) == 1.0
    )


def _layer(layer: Any, config: Any) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    normed = hasattr(attention, "q_norm")
    return _Layer(
        before=_norm(layer.input_layernorm),
        read=attention.q_proj.fused.whole,
        query_norm=_norm(attention.q_norm) if normed else None,
        key_norm=_norm(attention.k_norm) if normed else None,
        out=attention.o_proj,
        between=_norm(layer.post_attention_layernorm),
        gate_and_up=mlp.gate_proj.fused.whole,
        down=mlp.down_proj,
        window=_window(attention, config),
        scale=float(attention.scaling),
    )


def _norm(module: Any) -> _Norm:
    return _Norm(module.weight.detach(), float(module.variance_epsilon))


def _window(attention: Any, config: Any) -> int | None:
    """The tokens that a layer sees: Mistral tells it of all layers, Qwen of each, Llama of none."""
    teller = config if config.model_type == "mistral" else attention
    window = getattr(teller, "sliding_window", None)
    return int(window) if window else None
