"""Tiny random pairs as a person would have them: folders and a catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from app import files
from app.library.head_folder import MadeFor, fingerprint
from app.library.preflight import check
from app.models.draft_head import DraftHead, shape_for
from app.models.head_file import save_head
from app.models.hugging_face import transformers
from app.selftest.runs import MTP_PAIR, PAIR

_END = "</s>"
_DISTURBANCE = 0.004
"""How far the draft's weights are from the target's: it guesses right often, not always."""

_CATALOGUE = f"""\
models:
  tiny:
    title: Tiny random model
    source:
      folder: tiny
  tiny-draft:
    title: Tiny random model, disturbed
    source:
      folder: tiny-draft
  tiny-head:
    title: Tiny draft head
    source:
      folder: tiny-head
  tiny-mtp:
    title: Tiny random model with a module
    source:
      folder: tiny-mtp
pairs:
  {PAIR}:
    title: Tiny random models
    target: tiny
    method: draft-model
    draft: tiny-draft
    head: tiny-head
  {MTP_PAIR}:
    title: Tiny random model, multi-token prediction
    target: tiny-mtp
    method: mtp
"""


def write_tiny_pair() -> Path:
    """Writes the models, the head and the catalogue that offers them; the catalogue's path."""
    catalogue = files.user_catalogue()
    catalogue.parent.mkdir(parents=True, exist_ok=True)
    _write_head(catalogue.parent, _write_model(catalogue.parent / "tiny", disturbance=0.0))
    _write_model(catalogue.parent / "tiny-draft", disturbance=_DISTURBANCE)
    own = _write_model(catalogue.parent / "tiny-mtp", disturbance=0.0, kind="Qwen2")
    add_tensors(catalogue.parent / "tiny-mtp", _last_layer_module(own))
    with open(catalogue, "w", encoding="utf-8") as file:
        file.write(_CATALOGUE)
    return catalogue


def last_layer_head(target: Any, ids: torch.Tensor) -> DraftHead:
    """A head that is its target without all layers but the last: right now and then.

    `ids` [vocabulary] are what it can guess. For targets of the llama kind.
    """
    head = DraftHead(shape_for(target, len(ids)))
    layer, hidden = target.model.layers[-1], target.config.hidden_size
    copied = {
        "fc": torch.eye(hidden, 2 * hidden),
        "input_norm": layer.input_layernorm.weight,
        "between_norm": layer.post_attention_layernorm.weight,
        "norm": target.model.norm.weight,
        **{name: part.weight for name, part in layer.self_attn.named_children()},
        **{name: part.weight for name, part in layer.mlp.named_children() if "proj" in name},
    }
    weights = {f"{name}.weight": weight for name, weight in copied.items()}
    if head.shape.biased:
        reading = ("q_proj", "k_proj", "v_proj")
        weights |= {f"{name}.bias": getattr(layer.self_attn, name).bias for name in reading}
    head.load_state_dict(weights)
    return head


def _write_head(folder: Path, target: Any) -> None:
    """A head for the model in the folder `tiny`, which never guesses every third token."""
    ids = torch.tensor([token for token in range(target.config.vocab_size) if token % 3])
    facts = check(folder / "tiny")
    said = MadeFor("Tiny random model", fingerprint(facts), facts.vocabulary)
    head = last_layer_head(target, ids)
    save_head(folder / "tiny-head", head, ids, said, "Not at all: it is a part of its target.")


def add_tensors(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Writes more tensors into a folder's only file of weights."""
    file = folder / "model.safetensors"
    whole = {**load_file(file), **tensors}
    save_file({name: it.detach().clone() for name, it in whole.items()}, file, {"format": "pt"})


def _last_layer_module(target: Any) -> dict[str, torch.Tensor]:
    """A module that is its target without all layers but the last, as MiMo names its own."""
    hidden = target.config.hidden_size
    module = {
        "input_proj.weight": torch.eye(hidden, 2 * hidden).roll(hidden, dims=1),
        "hidden_layernorm.weight": torch.ones(hidden),
        "token_layernorm.weight": torch.ones(hidden),
        "final_layernorm.weight": target.model.norm.weight,
        **target.model.layers[-1].state_dict(),
    }
    return {f"model.mtp_layers.0.{name}": weight for name, weight in module.items()}


def _write_model(folder: Path, *, disturbance: float, kind: str = "Llama") -> Any:
    """A random model as safetensors, with a tokenizer of single bytes."""
    tokenizer = byte_tokenizer()
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}ForCausalLM")(config)
    with torch.no_grad():
        for parameter in model.parameters():
            # Larger weights than the default: a random model should have opinions.
            parameter.mul_(4.0 if parameter.dim() > 1 else 1.0)
            parameter.add_(disturbance * torch.randn_like(parameter))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


def byte_tokenizer() -> transformers.PreTrainedTokenizerFast:
    """A tokenizer of single bytes, ids 0..255, and a token that ends a text."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(letters)}
    inner = Tokenizer(models.BPE(vocabulary, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=inner, eos_token=_END)
