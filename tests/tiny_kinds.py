"""Tiny random checkpoints of many architectures, in folders as a person has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers

from app.selftest.tiny_models import byte_tokenizer

TOKENIZER = byte_tokenizer()
WINDOW = 8
"""Tokens that a sliding layer sees."""

_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": TOKENIZER.eos_token_id,
}
_GATED: dict[str, Any] = {**_SIZES, "intermediate_size": 48, "num_key_value_heads": 2}
_EXPERTS = {"moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2}
_RECURRENT = {
    "layer_types": ["linear_attention", "full_attention"],
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
_SLIDING = ["sliding_attention", "full_attention"]

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", _GATED),
    "qwen2": ("Qwen2", _GATED),
    "qwen3": ("Qwen3", {**_GATED, "head_dim": 16}),
    "mistral": ("Mistral", {**_GATED, "sliding_window": WINDOW}),
    "gemma2": ("Gemma2", {**_GATED, "head_dim": 16, "sliding_window": WINDOW}),
    "gemma3": (
        "Gemma3Text",
        {**_GATED, "head_dim": 16, "sliding_window": WINDOW, "layer_types": _SLIDING},
    ),
    "phi3": ("Phi3", {**_GATED, "sliding_window": WINDOW}),
    "gpt2": ("GPT2", _SIZES),
    "gpt_neox": ("GPTNeoX", {**_SIZES, "intermediate_size": 48}),
    "opt": ("OPT", {**_SIZES, "ffn_dim": 48, "word_embed_proj_dim": 32, "pad_token_id": 1}),
    "mixtral": ("Mixtral", {**_GATED, "num_local_experts": 4}),
    "qwen3_moe": ("Qwen3Moe", {**_GATED, **_EXPERTS, "head_dim": 16}),
}
"""Name, and what transformers calls it and needs to make it; all of these can be rewound."""

STATEFUL: dict[str, tuple[str, dict[str, Any]]] = {
    "mamba": ("Mamba", {**_SIZES, "state_size": 8}),
    "lfm2": ("Lfm2", {**_GATED, "layer_types": ["conv", "full_attention"]}),
    "qwen3_next": (
        "Qwen3Next",
        {
            **_GATED,
            **_EXPERTS,
            **_RECURRENT,
            "head_dim": 16,
            "shared_expert_intermediate_size": 32,
        },
    ),
}
"""As KINDS, but with a state that a rejected guess cannot be taken out of."""


def write_kind(
    folder: Path,
    kind: str,
    *,
    disturbance: float = 0.0,
    rows: int = len(TOKENIZER),
    generation: dict[str, object] | None = None,
    **changes: Any,
) -> Path:
    """A random model with opinions, and the byte tokenizer; a disturbed copy where asked.

    `rows` may pad the vocabulary, `generation` is added to generation_config.json.
    """
    name, sizes = {**KINDS, **STATEFUL}[kind]
    make = getattr(transformers, f"{name}Config")
    config = make(**{**sizes, "vocab_size": rows, **changes})
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            # Larger weights than the default: a random model should have opinions.
            parameter.mul_(4.0 if parameter.dim() > 1 else 1.0)
            parameter.add_(disturbance * torch.randn_like(parameter))
    model.save_pretrained(folder)
    TOKENIZER.save_pretrained(folder)
    if generation:
        file = folder / "generation_config.json"
        said = json.loads(file.read_text(encoding="utf-8"))
        file.write_text(json.dumps({**said, **generation}), encoding="utf-8")
    return folder
