"""Tiny EAGLE heads with random weights, written to disk as the published ones are.

And what such a head answers, in plain torch written from the papers' formulas: no cache, no fusing,
one pass over all pairs. Li et al. 2024, arXiv 2401.15077, section 3; Li et al. 2025, arXiv
2503.01840, section 3.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

HIDDEN, HEADS, SHARED, SIZE, INSIDE = 32, 4, 2, 8, 48
EPSILON = 1e-5
THETA = 500000.0


def config(vocabulary: int, **more) -> dict:
    """A config.json of the layout that SafeAILab began."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": INSIDE,
        "num_attention_heads": HEADS,
        "num_key_value_heads": SHARED,
        "num_hidden_layers": 1,
        "hidden_act": "silu",
        "rms_norm_eps": EPSILON,
        "rope_theta": THETA,
        "vocab_size": vocabulary,
        **more,
    }


def write(folder: Path, told: dict, tensors: dict) -> Path:
    """The two files of a head."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(told), encoding="utf-8")
    save_file(
        {name: value.contiguous() for name, value in tensors.items()}, folder / "model.safetensors"
    )
    return folder


def layer(prefix: str, reads: int, *, normed=False, biased=False) -> dict:
    """Random weights of the one decoder layer."""
    weights = {
        "self_attn.q_proj.weight": (HEADS * SIZE, reads),
        "self_attn.k_proj.weight": (SHARED * SIZE, reads),
        "self_attn.v_proj.weight": (SHARED * SIZE, reads),
        "self_attn.o_proj.weight": (HIDDEN, HEADS * SIZE),
        "mlp.gate_proj.weight": (INSIDE, HIDDEN),
        "mlp.up_proj.weight": (INSIDE, HIDDEN),
        "mlp.down_proj.weight": (HIDDEN, INSIDE),
    }
    made = {prefix + name: 0.15 * torch.randn(shape) for name, shape in weights.items()}
    made[prefix + "post_attention_layernorm.weight"] = norm()
    if normed:
        made |= {prefix + f"self_attn.{one}_norm.weight": norm(SIZE) for one in "qk"}
    if biased:
        sizes = {"q": HEADS * SIZE, "k": SHARED * SIZE, "v": SHARED * SIZE}
        made |= {prefix + f"self_attn.{x}_proj.bias": torch.randn(n) for x, n in sizes.items()}
    return made


def norm(size: int = HIDDEN):
    return 1.0 + 0.3 * torch.randn(size)


def first_version(folder: Path, vocabulary: int, *, seed=0, bias=True, biased=False, own=True):
    """An EAGLE-1 head; `own`: with the embeddings that such files carry."""
    torch.manual_seed(seed)
    tensors = layer("layers.0.", HIDDEN, biased=biased)
    tensors["fc.weight"] = 0.1 * torch.randn(HIDDEN, 2 * HIDDEN)
    if bias:
        tensors["fc.bias"] = 0.3 * torch.randn(HIDDEN)
    if own:
        tensors["embed_tokens.weight"] = 0.3 * torch.randn(vocabulary, HIDDEN)
    return write(folder, config(vocabulary, bias=bias), tensors)


def third_version(
    folder: Path,
    vocabulary: int,
    *,
    ids: list[int],
    seed: int = 0,
    target_hidden: int = HIDDEN,
    count: int = 3,
    normed: bool = False,
    tensors: dict | None = None,
    **told,
):
    """An EAGLE-3 head in SafeAILab's layout, for the tokens `ids` of its target."""
    torch.manual_seed(seed)
    made = layer("midlayer.", 2 * HIDDEN, normed=normed)
    made |= {f"midlayer.{name}.weight": norm() for name in ("hidden_norm", "input_layernorm")}
    made["fc.weight"] = 0.2 * torch.randn(HIDDEN, count * target_hidden)
    made["norm.weight"] = norm()
    made["lm_head.weight"] = torch.randn(len(ids), HIDDEN)
    made["d2t"] = torch.tensor(ids) - torch.arange(len(ids))
    made["t2d"] = torch.isin(torch.arange(vocabulary), torch.tensor(ids))
    if told.get("fc_norm"):
        made |= {f"fc_norm.{place}.weight": norm(target_hidden) for place in range(count)}
    if told.get("norm_before_fc"):
        made["input_norm.weight"] = norm(count * target_hidden)
    made |= tensors or {}
    told = {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": len(ids), **told}
    return write(folder, config(vocabulary, **told), made)


def rms(x, weight):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * weight


def turned(x, places):
    """Vectors [n, heads, size] turned by their places, halves paired as in Llama."""
    angles = places[:, None] * THETA ** (-torch.arange(0, SIZE, 2) / SIZE)
    cosines, sines = angles.cos()[:, None], angles.sin()[:, None]
    one, other = x.chunk(2, dim=-1)
    return torch.cat([one * cosines - other * sines, other * cosines + one * sines], dim=-1)


class ByDefinition:
    """What a head in a folder answers, from its tensors alone."""

    def __init__(self, folder: Path, embeddings, output_rows) -> None:
        """Embeddings and output rows are the target's, for a head that has none."""
        self.told = json.loads((folder / "config.json").read_text())
        held = load_file(folder / "model.safetensors")
        self.held = {name.replace("midlayer.", "layers.0."): held[name] for name in held}
        self.embeddings = self.held.get("embed_tokens.weight", embeddings)
        self.third = "lm_head.weight" in self.held
        self.rows = self.held.get("lm_head.weight", output_rows)

    def logits(self, tokens, states):
        """The logits behind the last token: `states` [known, width] are the target's, of the
        tokens before the first, second, ... of `tokens`; what is missing the head makes itself.
        """
        features = list(self.first(states))
        while True:
            out = self.passed(tokens[: len(features)], torch.stack(features))
            if len(features) == len(tokens):
                normed = rms(out, self.held["norm.weight"]) if self.norms_before_rows else out
                return normed @ self.rows.T
            features.append(out)

    @property
    def norms_before_rows(self):
        return self.third and not self.told.get("norm_output")

    def first(self, states):
        if not self.third:
            return states
        if self.told.get("norm_before_fc"):
            states = rms(states, self.held["input_norm.weight"])
        if self.told.get("fc_norm"):
            parts = states.chunk(3, dim=-1)
            each = [rms(x, self.held[f"fc_norm.{i}.weight"]) for i, x in enumerate(parts)]
            states = torch.cat(each, dim=-1)
        return states @ self.held["fc.weight"].T

    def passed(self, tokens, features):
        """The feature behind the last pair."""
        embedded = self.embeddings[torch.tensor(tokens)]
        if self.third:
            normed = rms(features, self.weight("hidden_norm"))
            residual = normed if self.told.get("norm_before_residual") else features
            read = torch.cat([rms(embedded, self.weight("input_layernorm")), normed], dim=-1)
        else:
            residual = read = torch.cat([embedded, features], -1) @ self.held["fc.weight"].T
            residual = read = read + self.held.get("fc.bias", 0)
        x = residual + self.attended(read) @ self.weight("self_attn.o_proj").T
        y = rms(x, self.weight("post_attention_layernorm"))
        gate = torch.nn.functional.silu(y @ self.weight("mlp.gate_proj").T)
        x = x + (gate * (y @ self.weight("mlp.up_proj").T)) @ self.weight("mlp.down_proj").T
        if self.told.get("norm_output"):
            x = rms(x, self.held["norm.weight"])
        return x[-1]

    def attended(self, x):
        made = {}
        for one in "qkv":
            bias = self.held.get(f"layers.0.self_attn.{one}_proj.bias", 0)
            made[one] = (x @ self.weight(f"self_attn.{one}_proj").T + bias).unflatten(
                -1, (-1, SIZE)
            )
            if (own := self.held.get(f"layers.0.self_attn.{one}_norm.weight")) is not None:
                made[one] = rms(made[one], own)
        places = torch.arange(len(x))
        query, key = turned(made["q"], places), turned(made["k"], places)
        key, value = (y.repeat_interleave(HEADS // SHARED, dim=1) for y in (key, made["v"]))
        scores = torch.einsum("qhs,khs->hqk", query, key) / SIZE**0.5
        scores = scores.masked_fill(torch.ones(len(x), len(x)).triu(1).bool(), -torch.inf)
        return torch.einsum("hqk,khs->qhs", scores.softmax(-1), value).flatten(1)

    def weight(self, name):
        return self.held[f"layers.0.{name}.weight"]
