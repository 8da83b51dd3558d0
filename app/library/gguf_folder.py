"""A GGUF file of the llama family, converted once into the safetensors folder that models load."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from app.library.gguf_metadata import GgufFile, Metadata
from app.library.gguf_tokenizer import SpecialIds, special_ids, write_tokenizer
from app.library.gguf_weights import Heads, write_weights
from app.library.whole_folder import Pause
from app.run.events import Progress
from app.run.problems import Problem

CONVERSION = 1
"""Grows by one when a conversion would come out differently; older folders are then left unused."""


def convert_gguf(
    file: Path, folder: Path, *, source: str, report: Callable[[Progress], None], pause: Pause
) -> None:
    """Fills an empty folder with the model of a GGUF file; `source` says where that came from.

    Raises Problem for an architecture other than llama, and for what such a file can lack.
    """
    report(Progress("Reading the GGUF file"))
    gguf = GgufFile(file)
    refuse_architecture(gguf)
    pause()
    config = config_of(gguf)
    ids = special_ids(gguf)
    write_tokenizer(gguf, folder, context_length=gguf.get("llama.context_length", int))
    config |= _ids(ids) | {
        "foretoken": {
            "requantised_from": gguf.quantisation,
            "source": source,
            "sha256": file_sha256(file, pause=pause),
        }
    }
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", _ids(ids))
    heads = Heads(query=gguf.get("llama.attention.head_count", int), key=_key_heads(gguf))
    write_weights(gguf, folder / "model.safetensors", heads=heads, report=report, pause=pause)


def refuse_architecture(gguf: Metadata) -> None:
    """Raises Problem for a model that is not of the llama family."""
    architecture = gguf.get("general.architecture", str)
    if architecture != "llama":
        raise Problem(
            f"{gguf.path.name} holds a model of the architecture {architecture!r}; only llama is "
            "read.",
            "Use the model's safetensors folder instead.",
        )


def file_sha256(file: Path, *, pause: Pause) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 22):
            pause()
            digest.update(block)
    return digest.hexdigest()


def config_of(gguf: Metadata) -> dict[str, object]:
    """transformers' configuration of the model, every number from the metadata.

    Raises Problem for what cannot be said in it.
    """
    names = {tensor.name for tensor in gguf.tensors}
    hidden = gguf.get("llama.embedding_length", int)
    heads = gguf.get("llama.attention.head_count", int)
    if heads < 1:
        raise Problem(f"{gguf.path.name} says {heads} attention heads.", "Get the file again.")
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "vocab_size": _vocabulary(gguf),
        "hidden_size": hidden,
        "intermediate_size": gguf.get("llama.feed_forward_length", int),
        "num_hidden_layers": gguf.get("llama.block_count", int),
        "num_attention_heads": heads,
        "num_key_value_heads": _key_heads(gguf),
        "head_dim": gguf.find("llama.attention.key_length", int) or hidden // heads,
        "hidden_act": "silu",
        "max_position_embeddings": gguf.get("llama.context_length", int),
        "rms_norm_eps": _shortest(gguf.get("llama.attention.layer_norm_rms_epsilon", float)),
        "rope_parameters": _rope(gguf),
        "tie_word_embeddings": "output.weight" not in names,
        "attention_bias": "blk.0.attn_q.bias" in names,
        "mlp_bias": "blk.0.ffn_up.bias" in names,
    }


def _vocabulary(gguf: Metadata) -> int:
    """The rows of the embedding: padded ones count."""
    for tensor in gguf.tensors:
        if tensor.name == "token_embd.weight" and len(tensor.shape) == 2:
            return int(tensor.shape[1])
    raise Problem(f"{gguf.path.name} holds no token embedding.", "Choose a whole model.")


def _key_heads(gguf: Metadata) -> int:
    """Heads of the key projection; as many as of the query where the file is silent."""
    heads = gguf.find("llama.attention.head_count_kv", int)
    return heads or gguf.get("llama.attention.head_count", int)


def _rope(gguf: Metadata) -> dict[str, object]:
    """Rotary embedding. Raises Problem for a kind of scaling that is not plain or linear."""
    kind = gguf.find("llama.rope.scaling.type", str) or "none"
    rope: dict[str, object] = {
        "rope_type": "default",
        "rope_theta": gguf.find("llama.rope.freq_base", float) or 10_000.0,
    }
    if kind == "linear":
        factor = gguf.get("llama.rope.scaling.factor", float)
        return rope | {"rope_type": "linear", "factor": factor}
    if kind != "none":
        raise Problem(
            f"{gguf.path.name} stretches its context by {kind!r}, which is not converted.",
            "Use the model's safetensors folder instead.",
        )
    return rope


def _ids(ids: SpecialIds) -> dict[str, object]:
    """The ids with a meaning, as both configuration files name them."""
    found: dict[str, object] = {}
    if ids.begin is not None:
        found["bos_token_id"] = ids.begin
    if ids.ends:
        found["eos_token_id"] = ids.ends[0] if len(ids.ends) == 1 else list(ids.ends)
    if ids.padding is not None:
        found["pad_token_id"] = ids.padding
    return found


def _shortest(value: float) -> float:
    """A number stored in 32 bits as the shortest decimal that means it: 1e-05, not 9.99…e-06."""
    return float(f"{value:.7g}")


def _write_json(file: Path, content: dict[str, object]) -> None:
    file.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
