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

from app.models.cache import FixedLayer, SequenceCache
from app.models.packed_linear import PackedLinear
from app.models.rotary_table import STEADY, RotaryTable

_CLASSES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
_FOLDED_ROWS = 32
"""Up to so many rows, queries that share a key are laid out as more rows of one head."""


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
    read: PackedLinear
    """Queries, keys and values."""
    query_norm: _Norm | None
    key_norm: _Norm | None
    out: PackedLinear
    between: _Norm
    gate_and_up: PackedLinear
    down: PackedLinear
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
        self._size = int(inner.model.layers[0].self_attn.head_dim)
        self._heads = int(inner.config.num_attention_heads)
        self._shared = int(inner.config.num_key_value_heads)

    def states(self, ids: Tensor, cache: SequenceCache) -> Tensor:
        """Feeds ids [n] behind the cache; the states behind the final norm, [n, hidden]."""
        start, end = cache.length, cache.length + len(ids)
        x = self._embeddings(ids)
        cosines, sines = self._rotary.between(start, end, x.dtype)
        masks = _Masks(start, end, x.dtype)
        for layer, held in zip(self._layers, cache.inner.layers, strict=True):
            attended = self._attend(layer, held, layer.before(x), (cosines, sines), masks)
            x = layer.out.plus(attended, x)
            y = layer.between(x)
            gate, up = layer.gate_and_up(y).chunk(2, dim=-1)
            x = layer.down.plus(functional.silu(gate) * up, x)
        return self._norm(x)

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
        masks: _Masks,
    ) -> Tensor:
        """What each row [n, hidden] gathers from the rows before it, [n, heads x size]."""
        vectors = layer.read(x).view(len(x), -1, self._size)
        turning, value = vectors[:, : -self._shared], vectors[:, -self._shared :]
        if layer.query_norm is not None and layer.key_norm is not None:
            query, key = turning[:, : self._heads], turning[:, self._heads :]
            turning = torch.cat([layer.query_norm(query), layer.key_norm(key)], dim=1)
        turned = _rotate(turning, *rotation)
        key = turned[:, self._heads :]
        keys, values = held.update(key.transpose(0, 1)[None], value.transpose(0, 1)[None])
        attend = _attend_folded if len(x) <= _FOLDED_ROWS else _attend_whole
        return attend(turned[:, : self._heads], keys, values, masks.of(layer.window), layer.scale)


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


class _Masks:
    """What rows start..end may see, added to their scores: [n, end] by window, made when asked."""

    def __init__(self, start: int, end: int, dtype: torch.dtype) -> None:
        self._start, self._end, self._dtype = start, end, dtype
        self._made: dict[int | None, Tensor | None] = {}

    def of(self, window: int | None) -> Tensor | None:
        """The mask of layers that see so many tokens; None where every row sees all."""
        if window not in self._made:
            self._made[window] = self._make(window)
        return self._made[window]

    def _make(self, window: int | None) -> Tensor | None:
        alone = self._end - self._start == 1
        if alone and (window is None or window >= self._end):
            return None
        asking = torch.arange(self._start, self._end)[:, None]
        asked = torch.arange(self._end)[None]
        hidden = asked > asking
        if window is not None:
            hidden |= asked <= asking - window
        return torch.zeros(hidden.shape, dtype=self._dtype).masked_fill_(hidden, float("-inf"))


def _attend_folded(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """Attention of query [n, heads, size] to keys [1, shared heads, length, size].

    The heads that share a key become rows of one head, so that no key is copied for them.
    """
    rows, heads, size = query.shape
    shared = keys.shape[1]
    group = heads // shared
    folded = (
        query.reshape(rows, shared, group, size).permute(1, 2, 0, 3).reshape(1, shared, -1, size)
    )
    if mask is not None and group > 1:
        mask = mask.repeat(group, 1)
    answer = functional.scaled_dot_product_attention(
        folded, keys, values, attn_mask=mask, scale=scale
    )
    return answer.view(shared, group, rows, size).permute(2, 0, 1, 3).reshape(rows, heads * size)


def _attend_whole(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scale: float
) -> Tensor:
    """The same for many rows, where a mask as large as the folded queries would be too large."""
    answer = functional.scaled_dot_product_attention(
        query.transpose(0, 1)[None], keys, values, attn_mask=mask, scale=scale, enable_gqa=True
    )
    return answer[0].transpose(0, 1).reshape(len(query), -1)


def _rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """x [n, heads, size] turned by its positions; the first half's sines are negated."""
    halves = x.reshape(*x.shape[:-1], 2, -1).flip(-2).view(x.shape)
    return torch.addcmul(x * cosines, halves, sines)


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
