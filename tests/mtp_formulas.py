"""Modules of Qwen3-Next, Qwen3.5 and MiMo in plain torch, written from their formulas.

h' = Block(W [norm(embedding of t + 1); norm(h of t)]), MiMo's halves the other way round; logits
are the target's output rows of norm(h'). A module that goes on with its own answer takes norm(h').
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import linear, silu, softmax

Weights = dict[str, Tensor]


def drafted(folder: Path, model: Any, text: list[int], guesses: list[int]) -> Tensor:
    """The logits behind a text and each of the guesses, from whole passes: nothing is kept."""
    whole = load_file(folder / "model.safetensors")
    hidden = model.model(torch.tensor([text[:-1]])).last_hidden_state[0]
    features, tokens = list(hidden), [*text[1:], *guesses]
    step = _mimo if model.config.model_type == "qwen2" else _qwen
    found = []
    for count in range(len(features), len(tokens) + 1):
        embedded = whole["model.embed_tokens.weight"][tokens[:count]]
        answer = step(whole, model.config, embedded, torch.stack(features))[-1]
        features.append(answer)
        found.append(model.lm_head(answer))
    return torch.stack(found)


def _qwen(whole: Weights, config: Any, embedded: Tensor, features: Tensor) -> Tensor:
    weights = _under(whole, "mtp.")

    def norm(x: Tensor, name: str) -> Tensor:
        return _rms(x, config) * (1 + weights[f"{name}.weight"])

    halves = [norm(embedded, "pre_fc_norm_embedding"), norm(features, "pre_fc_norm_hidden")]
    x = linear(torch.cat(halves, dim=-1), weights["fc.weight"])
    block = _under(weights, "layers.0.")

    def inside(x: Tensor, name: str) -> Tensor:
        return _rms(x, config) * (1 + block[f"{name}.weight"])

    y = inside(x, "input_layernorm")
    heads, size = config.num_attention_heads, config.head_dim
    query, gate = linear(y, block["self_attn.q_proj.weight"]).view(-1, heads, 2, size).unbind(2)
    key = linear(y, block["self_attn.k_proj.weight"]).view(len(x), -1, size)
    value = linear(y, block["self_attn.v_proj.weight"]).view(len(x), -1, size)
    query, key = inside(query, "self_attn.q_norm"), inside(key, "self_attn.k_norm")
    gathered = _attention(query, key, value, config) * torch.sigmoid(gate.reshape(len(x), -1))
    x = x + linear(gathered, block["self_attn.o_proj.weight"])
    y = inside(x, "post_attention_layernorm")
    return norm(x + _feed_forward(y, _under(block, "mlp."), config), "norm")


def _mimo(whole: Weights, config: Any, embedded: Tensor, features: Tensor) -> Tensor:
    weights = _under(whole, "model.mtp_layers.0.")

    def norm(x: Tensor, name: str) -> Tensor:
        return _rms(x, config) * weights[f"{name}.weight"]

    halves = [norm(features, "hidden_layernorm"), norm(embedded, "token_layernorm")]
    x = linear(torch.cat(halves, dim=-1), weights["input_proj.weight"])
    y = norm(x, "input_layernorm")
    size = config.hidden_size // config.num_attention_heads
    query, key, value = (
        linear(
            y, weights[f"self_attn.{one}_proj.weight"], weights[f"self_attn.{one}_proj.bias"]
        ).view(len(x), -1, size)
        for one in "qkv"
    )
    gathered = _attention(query, key, value, config)
    x = x + linear(gathered, weights["self_attn.o_proj.weight"])
    y = norm(x, "post_attention_layernorm")
    return norm(x + _gated(y, _under(weights, "mlp.")), "final_layernorm")


def _attention(query: Tensor, key: Tensor, value: Tensor, config: Any) -> Tensor:
    """Causal attention of [n, heads, size], a part of each vector turned by its position."""
    said = config.rope_parameters
    count, heads, size = query.shape
    turned = int(size * said.get("partial_rotary_factor", 1.0))
    speeds = said["rope_theta"] ** (-torch.arange(0, turned, 2) / turned)
    # Only differences of positions matter: those of tokens t + 1.
    angles = (torch.arange(count) + 1)[:, None, None] * speeds

    def turn(x: Tensor) -> Tensor:
        first, second = x[..., : turned // 2], x[..., turned // 2 : turned]
        cosines, sines = angles.cos(), angles.sin()
        both = [first * cosines - second * sines, second * cosines + first * sines]
        return torch.cat([*both, x[..., turned:]], dim=-1)

    group = heads // key.shape[1]
    key, value = (one.repeat_interleave(group, dim=1) for one in (turn(key), value))
    scores = torch.einsum("qhs,khs->hqk", turn(query), key) / size**0.5
    scores = scores.masked_fill(torch.ones(count, count).triu(1).bool(), -torch.inf)
    return torch.einsum("hqk,khs->qhs", softmax(scores, dim=-1), value).reshape(count, -1)


def _feed_forward(x: Tensor, weights: Weights, config: Any) -> Tensor:
    """A gated layer, or the best experts of each token and one that all share."""
    if "gate.weight" not in weights:
        return _gated(x, weights)
    shares, chosen = softmax(linear(x, weights["gate.weight"]), dim=-1).topk(
        config.num_experts_per_tok
    )
    shares = shares / shares.sum(dim=-1, keepdim=True)
    rows = []
    for row, share, experts in zip(x, shares, chosen, strict=True):
        parts = [
            weight * _gated(row, _expert(weights, int(expert)))
            for weight, expert in zip(share, experts, strict=True)
        ]
        rows.append(torch.stack(parts).sum(dim=0))
    opened = torch.sigmoid(linear(x, weights["shared_expert_gate.weight"]))
    return torch.stack(rows) + opened * _gated(x, _under(weights, "shared_expert."))


def _expert(weights: Weights, number: int) -> Weights:
    if "experts.gate_up_proj" not in weights:
        return _under(weights, f"experts.{number}.")
    gate, up = weights["experts.gate_up_proj"][number].chunk(2)
    down = weights["experts.down_proj"][number]
    return {"gate_proj.weight": gate, "up_proj.weight": up, "down_proj.weight": down}


def _gated(x: Tensor, weights: Weights) -> Tensor:
    gate, up, down = (weights[f"{one}_proj.weight"] for one in ("gate", "up", "down"))
    return linear(silu(linear(x, gate)) * linear(x, up), down)


def _rms(x: Tensor, config: Any) -> Tensor:
    return x / (x.pow(2).mean(dim=-1, keepdim=True) + config.rms_norm_eps).sqrt()


def _under(weights: Weights, stem: str) -> Weights:
    """The weights below a stem, by what follows it."""
    return {name[len(stem) :]: it for name, it in weights.items() if name.startswith(stem)}
