"""The tokenizer inside a GGUF file, as the files that transformers reads."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, processors
from tokenizers import pre_tokenizers as pre

from app.library.gguf_metadata import GgufFile, Metadata
from app.run.problems import Problem

_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4
_REMEDY = "Use the model's safetensors folder instead: it brings its tokenizer along."
_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_DIGITS_APART = ("smollm", "starcoder", "refact", "codeshell")
_GPT2 = ("gpt-2", "mpt", "olmo")
_LLAMA_BPE = ("llama3", "llama-v3", "llama-bpe")


class SpecialIds(msgspec.Struct, frozen=True):
    """The ids that a GGUF file gives a meaning to; None where it gives none."""

    begin: int | None
    ends: tuple[int, ...]
    """End of text first, then end of turn and end of message."""
    unknown: int | None
    padding: int | None


def special_ids(source: Metadata) -> SpecialIds:
    """Reads the ids with a meaning."""

    def find(role: str) -> int | None:
        return source.find(f"tokenizer.ggml.{role}_token_id", int)

    ends = [end for role in ("eos", "eot", "eom") if (end := find(role)) is not None]
    return SpecialIds(find("bos"), tuple(dict.fromkeys(ends)), find("unknown"), find("padding"))


def write_tokenizer(source: GgufFile, folder: Path, *, context_length: int) -> None:
    """Writes tokenizer.json and tokenizer_config.json. Raises Problem for an unknown kind."""
    _build(source).save(str(folder / "tokenizer.json"))
    tokens = source.get("tokenizer.ggml.tokens", list)
    ids = special_ids(source)
    named = {
        "bos_token": ids.begin,
        "eos_token": ids.ends[0] if ids.ends else None,
        "unk_token": ids.unknown,
        "pad_token": ids.padding,
    }
    config: dict[str, object] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": context_length,
        **{role: tokens[id_] for role, id_ in named.items() if id_ is not None},
    }
    if template := source.find("tokenizer.chat_template", str):
        config["chat_template"] = template
    text = json.dumps(config, indent=2, ensure_ascii=False)
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")


def refuse_tokenizer(source: Metadata) -> str:
    """How text is cut before merging, by llama.cpp's name for it.

    Raises Problem for a tokenizer that cannot be written in transformers' form.
    """
    kind = source.get("tokenizer.ggml.model", str)
    if kind != "gpt2":
        raise Problem(f"The tokenizer kind {kind!r} cannot be read from a GGUF file.", _REMEDY)
    name = source.find("tokenizer.ggml.pre", str) or "default"
    _pre_tokenizer(name)
    return name


def _build(source: GgufFile) -> Tokenizer:
    """The byte-level BPE tokenizer that the metadata describes.

    Bytes that the vocabulary has no token for are dropped, as the original tokenizer drops them.
    """
    name = refuse_tokenizer(source)
    tokens = source.get("tokenizer.ggml.tokens", list)
    merges = [tuple(merge.split(" ")) for merge in source.get("tokenizer.ggml.merges", list)]
    vocabulary = {token: id_ for id_, token in enumerate(tokens)}
    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, ignore_merges=name in _LLAMA_BPE)
    )
    if name == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = _pre_tokenizer(name)
    tokenizer.decoder = decoders.ByteLevel()
    _add_tokens(tokenizer, tokens, types=source.get("tokenizer.ggml.token_type", list))
    begin = special_ids(source).begin
    if source.find("tokenizer.ggml.add_bos_token", bool) and begin is not None:
        first = tokens[begin]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{first} $A", pair=f"{first} $A {first} $B", special_tokens=[(first, begin)]
        )
    return tokenizer


def _pre_tokenizer(name: str) -> pre.PreTokenizer:
    """How text is cut before merging, by llama.cpp's name for it."""
    if name in _GPT2:
        return pre.ByteLevel(add_prefix_space=False)
    if name in _DIGITS_APART:
        digits = pre.Digits(individual_digits=True)
        return pre.Sequence([digits, pre.ByteLevel(add_prefix_space=False)])
    pattern = _QWEN2 if name == "qwen2" else _LLAMA3 if name in _LLAMA_BPE else None
    if pattern is None:
        raise Problem(f"The pre-tokenizer {name!r} of the GGUF file is not known.", _REMEDY)
    split = pre.Split(Regex(pattern), behavior="isolated")
    return pre.Sequence([split, pre.ByteLevel(add_prefix_space=False, use_regex=False)])


def _add_tokens(tokenizer: Tokenizer, tokens: list[str], *, types: list[int]) -> None:
    """Makes control and user-defined tokens whole: they are never cut, whatever surrounds them."""
    special = [t for t, kind in zip(tokens, types, strict=True) if kind in (_UNKNOWN, _CONTROL)]
    own = [t for t, kind in zip(tokens, types, strict=True) if kind == _USER_DEFINED]
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in own])
