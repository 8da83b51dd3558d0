"""The layers of Llama and its kin as a lean pass computes them, packed or as they were loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from app.library.rotary import STEADY
from app.models.fused_linear import FusedPart
from app.models.int8_linear import Int8Linear
from app.models.packed_linear import PackedLinear
from app.models.plain_linear import PlainLinear, is_plain

_CLASSES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
_LINEAR = (
    *("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"),
    *("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
)
"""The linear layers of a decoder layer."""

Pair = tuple[Tensor, Tensor]


class Linear(Protocol):
    """A linear layer, packed or plain."""

    def __call__(self, x: Tensor) -> Tensor:
        """x [n, in] to [n, out]."""
        ...

    def plus(self, x: Tensor, other: Tensor) -> Tensor:
        """What a call answers plus other [n, out]."""
        ...


@dataclass(frozen=True, slots=True)
class Norm:
    """A root-mean-square norm."""

    weight: Tensor
    epsilon: float

    def __call__(self, x: Tensor) -> Tensor:
        """x [..., size], each vector by itself."""
        return functional.rms_norm(x, self.weight.shape, self.weight, self.epsilon)


@dataclass(frozen=True, slots=True)
class _FusedRead:
    """Queries, keys and values by one packed layer."""

    whole: PackedLinear | Int8Linear
    heads: int
    shared: int
    size: int
    norms: tuple[Norm, Norm] | None

    def __call__(self, x: Tensor) -> Pair:
        vectors = self.whole(x).view(x.shape[0], -1, self.size)
        turning, value = vectors[:, : -self.shared], vectors[:, -self.shared :]
        if self.norms is not None:
            query, key = turning[:, : self.heads], turning[:, self.heads :]
            turning = torch.cat([self.norms[0](query), self.norms[1](key)], dim=1)
        return turning, value


@dataclass(frozen=True, slots=True)
class _PlainRead:
    """Queries, keys and values by a layer each."""

    layers: tuple[Linear, Linear, Linear]
    size: int
    norms: tuple[Norm, Norm] | None

    def __call__(self, x: Tensor) -> Pair:
        query, key, value = (layer(x).view(x.shape[0], -1, self.size) for layer in self.layers)
        if self.norms is not None:
            query, key = self.norms[0](query), self.norms[1](key)
        return torch.cat([query, key], dim=1), value


@dataclass(frozen=True, slots=True)
class LeanLayer:
    """The parts of a decoder layer."""

    before: Norm
    read: Callable[[Tensor], Pair]
    """x [n, hidden] to queries and keys, [n, heads + shared, size], and values [n, shared, size].
    They have been normed in Qwen3, and are not turned yet."""
    out: Linear
    between: Norm
    gate_and_up: Callable[[Tensor], Pair]
    down: Linear
    window: int | None
    scale: float


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


def is_plain_throughout(inner: Any) -> bool:
    """Whether all layers of a model that is `known` are as they were loaded, on one device."""
    layers = list(inner.model.layers)
    one_device = len({weight.device for weight in inner.parameters()}) == 1
    return one_device and all(
        is_plain(layer.get_submodule(name)) for layer in layers for name in _LINEAR
    )


def layer_of(layer: Any, config: Any) -> LeanLayer:
    """The parts of a decoder layer of transformers."""
    attention, mlp = layer.self_attn, layer.mlp
    return LeanLayer(
        before=norm_of(layer.input_layernorm),
        read=_read_of(attention, config),
        out=_linear(attention.o_proj),
        between=norm_of(layer.post_attention_layernorm),
        gate_and_up=_gate_and_up_of(mlp),
        down=_linear(mlp.down_proj),
        window=_window(attention, config),
        scale=float(attention.scaling),
    )


def norm_of(module: Any) -> Norm:
    """A norm of transformers."""
    return Norm(module.weight.detach(), float(module.variance_epsilon))


def _read_of(attention: Any, config: Any) -> Callable[[Tensor], Pair]:
    norms = None
    if hasattr(attention, "q_norm"):
        norms = norm_of(attention.q_norm), norm_of(attention.k_norm)
    size = int(attention.head_dim)
    if isinstance(attention.q_proj, FusedPart):
        heads, shared = int(config.num_attention_heads), int(config.num_key_value_heads)
        return _FusedRead(attention.q_proj.fused.whole, heads, shared, size, norms)
    query, key, value = attention.q_proj, attention.k_proj, attention.v_proj
    return _PlainRead((_linear(query), _linear(key), _linear(value)), size, norms)


def _gate_and_up_of(mlp: Any) -> Callable[[Tensor], Pair]:
    if isinstance(mlp.gate_proj, FusedPart):
        whole = mlp.gate_proj.fused.whole

        def of_whole(x: Tensor) -> Pair:
            gate, up = whole(x).chunk(2, dim=-1)
            return gate, up

        return of_whole
    gate, up = _linear(mlp.gate_proj), _linear(mlp.up_proj)
    return lambda x: (gate(x), up(x))


def _linear(layer: Any) -> Linear:
    return layer if isinstance(layer, PackedLinear | Int8Linear) else PlainLinear(layer)


def _window(attention: Any, config: Any) -> int | None:
    """The tokens that a layer sees: Mistral tells it of all layers, Qwen of each, Llama of none."""
    teller = config if config.model_type == "mistral" else attention
    window = getattr(teller, "sliding_window", None)
    return int(window) if window else None
