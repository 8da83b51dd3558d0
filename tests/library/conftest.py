"""Tiny model folders, written by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

_HIDDEN = 8


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty home folder of the program's."""
    folder = tmp_path / "home é 模型"
    monkeypatch.setenv("FORETOKEN_HOME", str(folder))
    return folder


def _byte_tokenizer(
    *, swap: tuple[int, int] | None = None, added: tuple[str, ...] = ("<s>", "</s>")
) -> Tokenizer:
    """Byte-level BPE of 56 single letters, two of them swapped if asked, and added tokens."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())[:56]
    if swap:
        first, second = swap
        letters[first], letters[second] = letters[second], letters[first]
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in added])
    return tokenizer


@pytest.fixture(scope="session")
def byte_tokenizer() -> Callable[..., Tokenizer]:
    """Makes tokenizers of single letters."""
    return _byte_tokenizer


@pytest.fixture(scope="session")
def tiny_gguf() -> Callable[..., Path]:
    """Writes tiny GGUF files."""
    return _write_tiny_gguf


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[..., Path]:
    """Writes a tiny whole model folder; each part can be given otherwise."""

    def make(
        name: str = "model",
        *,
        vocabulary: int = 64,
        hidden: int = _HIDDEN,
        tokenizer: Tokenizer | None = None,
        config: dict[str, object] | None = None,
        generation: dict[str, object] | None = None,
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        base = {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": vocabulary,
            "hidden_size": hidden,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "max_position_embeddings": 128,
            "eos_token_id": 57,
        }
        _write_json(folder / "config.json", base | (config or {}))
        if generation is not None:
            _write_json(folder / "generation_config.json", generation)
        (tokenizer or _byte_tokenizer()).save(str(folder / "tokenizer.json"))
        embedding = np.zeros((vocabulary, hidden), dtype=np.float32)
        norm = np.ones(hidden, dtype=np.float32)
        tensors = {"model.embed_tokens.weight": embedding, "model.norm.weight": norm}
        save_file(tensors, folder / "model.safetensors")
        return folder

    return make


@pytest.fixture
def make_head(tmp_path: Path) -> Callable[..., Path]:
    """Writes a draft head for models of `make_folder`, as far as headers tell."""

    def make(name: str = "head", *, hidden: int = _HIDDEN, vocabulary: int = 64) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        shape = {"hidden": hidden, "intermediate": 4, "heads": 2, "shared_heads": 2}
        shape |= {"head_size": 4, "norm_epsilon": 1e-5, "biased": False, "normed": False}
        target = {"title": "Tiny", "fingerprint": "0" * 64, "vocabulary": vocabulary}
        described = {
            "format": "foretoken draft head 1",
            "shape": shape | {"vocabulary": 8},
            "target": target,
            "trained": "Not at all.",
        }
        _write_json(folder / "head.json", described)
        save_file({"weight": np.zeros((3, 5), dtype=np.float32)}, folder / "head.safetensors")
        return folder

    return make


def _write_json(file: Path, content: object) -> None:
    """Writes plain JSON."""
    file.write_text(json.dumps(content), encoding="utf-8")


_TOKENS = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "ab", "Ġa", "<s>", "</s>", "<turn>"]
_MERGES = ["a b", "Ġ a"]
_TEMPLATE = "{% for message in messages %}<s>{{ message['content'] }}</s>{% endfor %}"


def _write_tiny_gguf(
    file: Path,
    *,
    architecture: str = "llama",
    pre: str = "smollm",
    kind: GGMLQuantizationType = GGMLQuantizationType.Q8_0,
    tied: bool = True,
    extra: dict[str, Any] | None = None,
    extra_tensor: str | None = None,
) -> Path:
    """A whole GGUF file of two layers, hidden 64, four query heads and two key heads."""
    writer = GGUFWriter(file, architecture)
    writer.add_block_count(2)
    writer.add_context_length(128)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_rope_freq_base(5000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(_TOKENS)
    writer.add_token_types([1] * (len(_TOKENS) - 3) + [3, 3, 4])
    writer.add_token_merges(_MERGES)
    writer.add_bos_token_id(_TOKENS.index("<s>"))
    writer.add_eos_token_id(_TOKENS.index("</s>"))
    writer.add_eot_token_id(_TOKENS.index("<turn>"))
    writer.add_chat_template(_TEMPLATE)
    for key, value in (extra or {}).items():
        add = writer.add_bool if isinstance(value, bool) else writer.add_string
        add(key, value)
    random = np.random.default_rng(0)

    def add_tensor(name: str, *shape: int) -> None:
        values = random.standard_normal(shape, dtype=np.float32)
        held = kind if len(shape) > 1 else GGMLQuantizationType.F32
        writer.add_tensor(name, quantize(values, held), raw_dtype=held)

    add_tensor("token_embd.weight", len(_TOKENS), 64)
    for layer in range(2):
        for name, rows, columns in (
            ("attn_q", 64, 64),
            ("attn_k", 32, 64),
            ("attn_v", 32, 64),
            ("attn_output", 64, 64),
            ("ffn_gate", 96, 64),
            ("ffn_up", 96, 64),
            ("ffn_down", 64, 96),
        ):
            add_tensor(f"blk.{layer}.{name}.weight", rows, columns)
        add_tensor(f"blk.{layer}.attn_norm.weight", 64)
        add_tensor(f"blk.{layer}.ffn_norm.weight", 64)
    add_tensor("output_norm.weight", 64)
    if not tied:
        add_tensor("output.weight", len(_TOKENS), 64)
    if extra_tensor:
        add_tensor(extra_tensor, 8)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file
