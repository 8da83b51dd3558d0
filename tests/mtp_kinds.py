"""Tiny random checkpoints with modules for multi-token prediction, named as each family does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.modeling_layers import MtpModel

from app.selftest.tiny_models import add_tensors
from tiny_kinds import TOKENIZER

LAYERS = 2
_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": TOKENIZER.eos_token_id,
}
_ROUTED = {
    "moe_intermediate_size": 16,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 1,
}
_LATENT = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
}
DEEPSEEK_NAMED: dict[str, tuple[str, dict[str, Any]]] = {
    "deepseek_v3": ("DeepseekV3", {**_SIZES, **_ROUTED, **_LATENT}),
    "glm4_moe": ("Glm4Moe", {**_SIZES, **_ROUTED, "head_dim": 16, "use_qk_norm": True}),
    "glm4_moe_lite": (
        "Glm4MoeLite",
        {**_SIZES, **_ROUTED, **_LATENT, "mtp_mlp_layer_types": 3 * ["sparse"]},
    ),
}
"""Kinds whose modules transformers has code for."""
_RECURRENT = {
    "layer_types": ["linear_attention", "full_attention"],
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "head_dim": 16,
}
_EXPERTS = {
    "moe_intermediate_size": 16,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "shared_expert_intermediate_size": 16,
}
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen3_next": ("Qwen3Next", {**_SIZES, **_RECURRENT, **_EXPERTS}),
    "qwen3_5_text": ("Qwen3_5Text", {**_SIZES, **_RECURRENT}),
    "qwen3_5_moe_text": ("Qwen3_5MoeText", {**_SIZES, **_RECURRENT, **_EXPERTS}),
    "qwen2": ("Qwen2", _SIZES),
}
"""Kinds whose modules no library at hand computes."""


def write_target(folder: Path, kind: str, **changes: Any) -> Any:
    """A random target of this kind, without modules; the model of transformers that it is of."""
    name, sizes = {**DEEPSEEK_NAMED, **OTHERS}[kind]
    config = getattr(transformers, f"{name}Config")(
        **{**sizes, "vocab_size": len(TOKENIZER), **changes}
    )
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    _opinionate(model)
    model.save_pretrained(folder)
    TOKENIZER.save_pretrained(folder)
    return model


def write_deepseek_named(
    folder: Path, kind: str, modules: int = 1, *, knowing: bool = False, **changes: Any
) -> None:
    """A target with so many modules, which transformers made; `knowing` ones guess right at times,
    as their blocks are the target's last layer.
    """
    model = write_target(folder, kind, num_mtp_layers=modules, **changes)
    made = MtpModel(model, modules).eval()
    _opinionate(made.layers)
    if knowing:
        for module in made.layers:
            _make_knowing(module, model.model)
    tensors = {}
    for number, module in enumerate(made.layers):
        stem = f"model.layers.{model.config.num_hidden_layers + number}"
        for name, tensor in module.state_dict().items():
            name = name.removeprefix("mtp_block.").replace("post_norm", "shared_head.norm")
            tensors |= dict(_apart(f"{stem}.{name}", tensor))
        # Copies of the target's own, as published checkpoints have them.
        tensors[f"{stem}.embed_tokens.weight"] = model.get_input_embeddings().weight.detach()
        tensors[f"{stem}.shared_head.head.weight"] = model.lm_head.weight.detach()
    add_tensors(folder, tensors)


def _make_knowing(module: Any, target: Any) -> None:
    """Lets a module do to an embedding what the target's last layer does."""
    hidden = target.config.hidden_size
    module.mtp_block.load_state_dict(target.layers[-1].state_dict())
    with torch.no_grad():
        module.eh_proj.weight.copy_(torch.eye(hidden, 2 * hidden))
        module.enorm.weight.fill_(1.0)
        module.post_norm.weight.copy_(target.norm.weight)


def write_qwen_named(folder: Path, kind: str, *, fused: bool = False) -> None:
    """A target of Qwen3-Next's kin with one module; its experts in one tensor where `fused`."""
    config = write_target(folder, kind).config
    hidden, size = config.hidden_size, config.head_dim
    block = {
        "self_attn.q_proj": (2 * config.num_attention_heads * size, hidden),
        "self_attn.k_proj": (config.num_key_value_heads * size, hidden),
        "self_attn.v_proj": (config.num_key_value_heads * size, hidden),
        "self_attn.o_proj": (hidden, config.num_attention_heads * size),
        "self_attn.q_norm": (size,),
        "self_attn.k_norm": (size,),
        "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
    }
    if kind == "qwen3_5_text":
        block |= _gated("mlp", config.intermediate_size, hidden)
    else:
        block |= {"mlp.gate": (config.num_experts, hidden), "mlp.shared_expert_gate": (1, hidden)}
        block |= _gated("mlp.shared_expert", config.shared_expert_intermediate_size, hidden)
        for number in range(config.num_experts):
            block |= _gated(f"mlp.experts.{number}", config.moe_intermediate_size, hidden)
    parts = {
        "fc": (hidden, 2 * hidden),
        "pre_fc_norm_embedding": (hidden,),
        "pre_fc_norm_hidden": (hidden,),
        "norm": (hidden,),
        **{f"layers.0.{name}": shape for name, shape in block.items()},
    }
    # These norms multiply by 1 + w: their weights lie around 0.
    tensors = {f"mtp.{name}.weight": _drawn(shape, 0.0) for name, shape in parts.items()}
    add_tensors(folder, _together(tensors) if fused else tensors)


def write_mimo_named(folder: Path) -> None:
    """A target of the Qwen2 kind with one module, named as MiMo's."""
    config = write_target(folder, "qwen2").config
    hidden = config.hidden_size
    size = hidden // config.num_attention_heads
    shared = config.num_key_value_heads * size
    matrices = {
        "input_proj": (hidden, 2 * hidden),
        "self_attn.q_proj": (hidden, hidden),
        "self_attn.k_proj": (shared, hidden),
        "self_attn.v_proj": (shared, hidden),
        "self_attn.o_proj": (hidden, hidden),
        **_gated("mlp", config.intermediate_size, hidden),
    }
    norms = ("token_layernorm", "hidden_layernorm", "final_layernorm")
    norms += ("input_layernorm", "post_attention_layernorm")
    tensors = {f"{name}.weight": _drawn(shape, 0.0) for name, shape in matrices.items()}
    tensors |= {f"{name}.weight": _drawn((hidden,), 1.0) for name in norms}
    sizes = {"q": hidden, "k": shared, "v": shared}
    tensors |= {f"self_attn.{one}_proj.bias": _drawn((sizes[one],), 0.0) for one in sizes}
    add_tensors(folder, {f"model.mtp_layers.0.{name}": it for name, it in tensors.items()})


def _gated(stem: str, inner: int, hidden: int) -> dict[str, tuple[int, ...]]:
    """The matrices of a gated feed-forward layer."""
    wide, narrow = (inner, hidden), (hidden, inner)
    return {f"{stem}.gate_proj": wide, f"{stem}.up_proj": wide, f"{stem}.down_proj": narrow}


def _drawn(shape: tuple[int, ...], around: float) -> torch.Tensor:
    return around + (0.1 if len(shape) > 1 else 0.3) * torch.randn(shape)


def _together(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same with all experts of a kind in one tensor, as Qwen3.5's files hold them."""
    stem = "mtp.layers.0.mlp.experts"
    found = {name: it for name, it in tensors.items() if not name.startswith(f"{stem}.")}
    count = (len(tensors) - len(found)) // 3

    def every(part: str) -> torch.Tensor:
        return torch.stack([tensors[f"{stem}.{one}.{part}.weight"] for one in range(count)])

    found[f"{stem}.gate_up_proj"] = torch.cat([every("gate_proj"), every("up_proj")], dim=1)
    found[f"{stem}.down_proj"] = every("down_proj")
    return found


def _apart(name: str, tensor: torch.Tensor) -> list[tuple[str, torch.Tensor]]:
    """Experts that lie in one tensor, one by one as checkpoints hold them."""
    fused = re.fullmatch(r"(.+\.experts)\.(gate_up_proj|down_proj)", name)
    if fused is None:
        return [(name, tensor)]
    stem, part = fused.groups()
    found = []
    for number, one in enumerate(tensor):
        if part == "down_proj":
            found.append((f"{stem}.{number}.down_proj.weight", one))
        else:
            gate, up = one.chunk(2)
            found.append((f"{stem}.{number}.gate_proj.weight", gate))
            found.append((f"{stem}.{number}.up_proj.weight", up))
    return found


def _opinionate(model: torch.nn.Module) -> None:
    """Larger weights than the default, and norms that are not all alike."""
    with torch.no_grad():
        for parameter in model.parameters():
            drawn = torch.randn_like(parameter)
            parameter.copy_(0.3 * drawn if parameter.dim() > 1 else 1 + 0.3 * drawn)
        for name, buffer in model.named_buffers():
            if name.endswith("correction_bias"):
                buffer.copy_(0.1 * torch.randn_like(buffer))
