"""The sizes of a model as its own files tell them: a folder's, or a GGUF file's header."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from app.library.gguf_check import check_gguf
from app.library.gguf_header import GgufHeader
from app.library.model_files import Config, read_json
from app.library.mtp_layout import MtpModules, find_mtp
from app.library.packed_weights import weights_in
from app.library.quantised import Quantised, read_quantisation
from app.library.shape import Shape
from app.library.weight_files import TensorPlace, weight_files
from app.run.problems import Problem

_OUTPUT = ("lm_head.weight", "embed_out.weight", "output.weight")
_TABLES = (
    *_OUTPUT,
    "embed_tokens.weight",
    "embed_in.weight",
    "embed_positions.weight",
    "wte.weight",
    "wpe.weight",
    "token_embd.weight",
)
_TOKEN_IN_FILE = 72
"""Bytes of a tokenizer's file for each token, as those of SmolLM2 are."""
_EXPERTS = (".experts.", ".block_sparse_moe.experts.", "_exps.")


class ModelSize(msgspec.Struct, frozen=True):
    """A model's sizes, and how many of its weights a quantisation takes hold of."""

    shape: Shape
    linear: int
    """Weights in linear layers: all but the tables of tokens and positions, norms, biases, the
    output layer, and experts, which lie in one block that no library quantises."""
    tokenizer: int
    """Bytes of the tokenizer's file."""
    quantised: Quantised | None = None
    """How the folder's own weights are quantised."""
    file_bytes: int = 0
    """Bytes of the weights as their files hold them; 0 where that is not known."""
    mtp: int = 0
    """Weights of its modules for multi-token prediction, which are not among its own."""
    mtp_modules: int = 0
    latent: int = 0
    """Numbers that a layer of latent attention (DeepSeek) keeps of a token: each pass makes the
    keys and values of all heads of them. 0 for any other."""

    @property
    def held(self) -> str | None:
        """What the weights are held in if they stay as their folder holds them, and in no other."""
        return self.quantised.held if self.quantised is not None else None

    @property
    def feed_forward(self) -> int:
        """Matrices of a feed-forward layer: 3 where a gate is computed beside it, or where packed
        weights do not tell; else 2.
        """
        if self.held is not None:
            return 3
        shape = self.shape
        vectors = 2 * (shape.heads + shape.key_value_heads) * shape.head_size
        rest = self.linear / shape.layers - vectors * shape.hidden
        return 2 if rest < 2.5 * shape.hidden * shape.intermediate else 3

    @property
    def kept(self) -> int:
        """Numbers that a layer's cache holds of one token, as transformers keeps them."""
        return self.latent or 2 * self.shape.key_value_heads * self.shape.head_size

    @property
    def table(self) -> int:
        """Numbers of the table of embeddings; the output layer has as many."""
        return self.shape.vocabulary * self.shape.hidden


def size_of_shape(shape: Shape) -> ModelSize:
    """Sizes of which no file is there; every matrix that is no table is taken for a linear one."""
    tables = shape.vocabulary * shape.hidden * (1 if shape.tied else 2)
    norms = (2 * shape.layers + 1) * shape.hidden
    return ModelSize(
        shape, max(shape.parameters - tables - norms, 0), _TOKEN_IN_FILE * shape.vocabulary
    )


def size_of(path: Path) -> ModelSize:
    """The sizes of a model's folder, or of a GGUF file, from headers alone.

    Raises Problem for what cannot be loaded, and for a config.json that does not say its sizes.
    """
    return _size_of_gguf(path) if path.is_file() else _size_of_folder(path)


def _size_of_folder(folder: Path) -> ModelSize:
    config = read_json(folder / "config.json", Config)
    declared, files = config.quantised, weight_files(folder)
    places = {name: place for file in files for name, place in file.tensors.items()}
    text = config.text
    said = text.tie_word_embeddings
    tied = config.tie_word_embeddings if said is None else said
    mtp = find_mtp(places, text.num_hidden_layers or text.n_layer or 0)
    weights = {
        name: it
        for name, it in places.items()
        if not (tied and _ends(name, _OUTPUT)) and not (mtp and mtp.owns(name))
    }
    hidden = text.hidden_size or text.n_embd or 0
    heads = text.num_attention_heads or text.n_head or 0
    experts = text.num_experts or text.num_local_experts or text.n_routed_experts
    inner = text.moe_intermediate_size if experts else None
    tokenizer = folder / "tokenizer.json"
    own = read_quantisation(folder, declared) if declared else None
    turned = text.qk_rope_head_dim or 0
    latent = text.kv_lora_rank + turned if text.kv_lora_rank else 0
    return _checked(
        folder / "config.json",
        quantised=own,
        file_bytes=sum(file.weight_bytes for file in files),
        mtp=mtp,
        mtp_weights=sum(places[name].elements for name in mtp.names) if mtp else 0,
        tokenizer=tokenizer.stat().st_size if tokenizer.is_file() else None,
        linear=_linear((name, place.shape) for name, place in weights.items()),
        parameters=sum(weights_in(name, place, own) for name, place in weights.items()),
        layers=text.num_hidden_layers or text.n_layer or 0,
        hidden=hidden,
        heads=heads,
        key_value_heads=text.num_key_value_heads or heads,
        latent=latent,
        head_size=((text.qk_nope_head_dim or 0) + turned if latent else text.head_dim)
        or (hidden // heads if heads else 0),
        intermediate=inner or text.intermediate_size or text.ffn_dim or 4 * hidden,
        vocabulary=text.vocab_size or _rows(weights),
        tied=not any(_ends(name, _OUTPUT) for name in weights),
        context_length=text.max_position_embeddings or text.n_positions,
    )


def _size_of_gguf(file: Path) -> ModelSize:
    check_gguf(file)
    header = GgufHeader(file)
    hidden = header.get("llama.embedding_length", int)
    heads = header.get("llama.attention.head_count", int)
    shapes = {tensor.name: tensor.shape[::-1] for tensor in header.tensors}
    return _checked(
        file,
        linear=_linear(shapes.items()),
        parameters=sum(tensor.n_elements for tensor in header.tensors),
        layers=header.get("llama.block_count", int),
        hidden=hidden,
        heads=heads,
        key_value_heads=header.find("llama.attention.head_count_kv", int) or heads,
        head_size=header.find("llama.attention.key_length", int) or hidden // heads,
        intermediate=header.get("llama.feed_forward_length", int),
        vocabulary=shapes["token_embd.weight"][0],
        tied="output.weight" not in shapes,
        context_length=header.get("llama.context_length", int),
    )


def _checked(
    file: Path,
    *,
    linear: int,
    tokenizer: int | None = None,
    quantised: Quantised | None = None,
    file_bytes: int = 0,
    mtp: MtpModules | None = None,
    mtp_weights: int = 0,
    latent: int = 0,
    **sizes: object,
) -> ModelSize:
    """Raises Problem unless every size is one that a model can have."""
    try:
        shape = msgspec.convert(sizes, Shape)
    except msgspec.ValidationError as error:
        raise Problem(
            f"{file} does not say the sizes of its model: {error}.",
            "Get the file again; the memory that a model takes is computed from them.",
        ) from None
    said = _TOKEN_IN_FILE * shape.vocabulary if tokenizer is None else tokenizer
    modules = len(mtp.modules) if mtp else 0
    return ModelSize(shape, linear, said, quantised, file_bytes, mtp_weights, modules, latent)


def _linear(tensors: Iterable[tuple[str, tuple[int, ...]]]) -> int:
    """Weights of linear layers, told from others by their names and shapes."""
    total = 0
    for name, shape in tensors:
        plain = len(shape) == 2 and name.endswith(".weight")
        if plain and not _ends(name, _TABLES) and not any(part in name for part in _EXPERTS):
            total += shape[0] * shape[1]
    return total


def _ends(name: str, parts: tuple[str, ...]) -> bool:
    """Whether a tensor is one of these parts of a model."""
    return f".{name}".endswith(tuple(f".{part}" for part in parts))


def _rows(places: dict[str, TensorPlace]) -> int:
    """Rows of the table of embeddings, 0 where there is none by a known name."""
    tables = [place.shape[0] for name, place in places.items() if _ends(name, _TABLES)]
    return max(tables, default=0)
