"""A model folder's JSON files, as far as the program asks: config, tokenizer, generation."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from app.library.json_text import decode
from app.library.weight_files import refuse_written_link
from app.run.problems import Problem

_Content = TypeVar("_Content")
Ids = int | list[int] | None


class Origin(msgspec.Struct, frozen=True):
    """What a conversion of ours wrote about the file that it started from."""

    requantised_from: str
    source: str
    sha256: str


class _TextConfig(msgspec.Struct, frozen=True):
    """The language part of a config.json; models with images nest it under `text_config`."""

    model_type: str = ""
    vocab_size: int | None = None
    hidden_size: int | None = None
    num_hidden_layers: int | None = None
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    intermediate_size: int | None = None
    max_position_embeddings: int | None = None
    tie_word_embeddings: bool | None = None
    n_embd: int | None = None
    """GPT-2's word for the hidden size; its other sizes follow."""
    n_layer: int | None = None
    n_head: int | None = None
    n_positions: int | None = None
    ffn_dim: int | None = None
    """OPT's word for the intermediate size."""
    moe_intermediate_size: int | None = None
    num_experts: int | None = None
    num_local_experts: int | None = None
    n_routed_experts: int | None = None
    kv_lora_rank: int | None = None
    """Of latent attention (DeepSeek), whose heads have sizes of their own."""
    qk_nope_head_dim: int | None = None
    qk_rope_head_dim: int | None = None
    layer_types: Any = None
    """What each layer is, where they differ."""
    eos_token_id: Ids = None
    dtype: str | None = None
    torch_dtype: str | None = None
    quantization_config: dict[str, Any] | None = None


class Config(_TextConfig, frozen=True):
    """A config.json."""

    architectures: list[str] | None = None
    text_config: _TextConfig | None = None
    auto_map: dict[str, msgspec.Raw] | None = None
    is_encoder_decoder: bool | None = None
    quantization: dict[str, msgspec.Raw] | None = None
    """How MLX says that it has packed the weights."""
    foretoken: Origin | None = None

    @property
    def text(self) -> _TextConfig:
        """The language part."""
        return self.text_config or self

    @property
    def quantised(self) -> dict[str, Any] | None:
        """How the weights are quantised; where both parts say it, transformers takes the outer."""
        return self.quantization_config or self.text.quantization_config or None


class GenerationConfig(msgspec.Struct, frozen=True):
    """A generation_config.json; None for what it does not say."""

    eos_token_id: Ids = None
    do_sample: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None


class AddedToken(msgspec.Struct, frozen=True):
    """A token that tokenizer.json lists beside its vocabulary."""

    id: int
    content: str


class TokenizerFile(msgspec.Struct, frozen=True):
    """The part of tokenizer.json that needs no tokenizer."""

    added_tokens: list[AddedToken] = []


class _TokenContent(msgspec.Struct, frozen=True):
    content: str


class TokenizerConfig(msgspec.Struct, frozen=True):
    """The part of tokenizer_config.json that says how a text ends, and how a chat is written."""

    eos_token: str | _TokenContent | None = None

    @property
    def end(self) -> str | None:
        """The token that ends a text."""
        end = self.eos_token
        return end.content if isinstance(end, _TokenContent) else end


def read_json(file: Path, kind: type[_Content]) -> _Content:
    """The file's content. Raises Problem for a missing file and for one that is not such JSON."""
    try:
        content = file.read_bytes()
    except FileNotFoundError as error:
        raise Problem(f"{file} is missing.", "Choose the folder of a whole model.") from error
    except OSError as error:
        raise Problem(f"{file} cannot be read: {error.strerror}.", "Check the file.") from error
    try:
        return decode(content, kind)
    except msgspec.ValidationError as error:
        raise Problem(f"{file} does not read as expected: {error}.", "Correct the file.") from error
    except msgspec.DecodeError as error:
        refuse_written_link(file, content[:200])
        start = content[:24].decode("utf-8", "replace").split("\n")[0].strip()
        raise Problem(
            f"{file.name} is not JSON (starts with {start!r}): {file}.",
            "Get the file again; a page that asks for a login is often saved in its place.",
        ) from error


def read_json_if_there(file: Path, kind: type[_Content]) -> _Content:
    """The file's content, or what an empty one would hold. Raises Problem as `read_json` does."""
    return read_json(file, kind) if file.exists() else kind()
