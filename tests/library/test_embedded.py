"""The embedded model, as it is really fetched: its weights, its tokenizer, its facts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import regex
import torch
from gguf import GGUFReader
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from app import files
from app.library.catalogue import load_catalogue
from app.library.entries import WheelSource
from app.library.overview import overview
from app.library.preflight import check
from app.library.sources import locate
from app.library.wheel import unpacked_member

pytestmark = pytest.mark.embedded
CUT = regex.compile(r"\p{N}|'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
"""llama.cpp cuts out numerals one by one, then cuts the rest as GPT-2 does."""
TEXTS = [
    "Hello world! 123",
    "\n\n1. One\n\n2. Two\n\n10. Ten",
    "2024-12-31, 3.14159, ½ and ²",
    "  multiple   spaces",
    " leading, trailing ",
    "def f(x):\n    return x[0] + 1\n\n\nclass A:\n\tpass\n",
    "Café déjà vu, 模型 и 🙂👩‍🔬.",
    "I'm sure they'll say it's 'quoted'",
    "\r\n\r\n  \t x",
    "",
]


@pytest.fixture(scope="module")
def gguf_file(embedded_folder: Path) -> Path:
    source = load_catalogue([files.shipped_catalogue()]).models[0].source
    assert isinstance(source, WheelSource)
    return unpacked_member(source)


@pytest.fixture(scope="module")
def tokenizer(embedded_folder: Path) -> Tokenizer:
    return Tokenizer.from_file(str(embedded_folder / "tokenizer.json"))


@pytest.fixture(scope="module")
def reference(gguf_file: Path) -> Reference:
    return Reference(gguf_file)


class Reference:
    """Byte-level BPE written down plainly, on the file's own tokens and merges."""

    def __init__(self, file: Path) -> None:
        reader = GGUFReader(file)
        tokens = reader.fields["tokenizer.ggml.tokens"].contents()
        merges = reader.fields["tokenizer.ggml.merges"].contents()
        self.ids = {token: id_ for id_, token in enumerate(tokens)}
        self.ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in printable]
        self.letters = {byte: chr(byte) for byte in printable}
        self.letters |= {byte: chr(256 + n) for n, byte in enumerate(others)}

    def encode(self, text: str) -> list[int]:
        """The ids of a text without special tokens."""
        parts = [part for piece in regex.split(r"(\p{N})", text) for part in CUT.findall(piece)]
        return [id_ for part in parts for id_ in self._merge(part)]

    def _merge(self, part: str) -> list[int]:
        symbols = [self.letters[byte] for byte in part.encode()]
        symbols = [symbol for symbol in symbols if symbol in self.ids]
        while pairs := [p for p in pairwise(symbols) if p in self.ranks]:
            best = min(pairs, key=self.ranks.__getitem__)
            place = next(i for i in range(len(symbols)) if (*symbols[i : i + 2],) == best)
            symbols[place : place + 2] = ["".join(best)]
        return [self.ids[symbol] for symbol in symbols]


def test_weights_equal_those_of_transformers(embedded_folder: Path, gguf_file: Path) -> None:
    theirs = AutoModelForCausalLM.from_pretrained(
        gguf_file.parent, gguf_file=gguf_file.name, dtype="float32"
    ).state_dict()
    ours: dict[str, Any] = AutoModelForCausalLM.from_pretrained(
        embedded_folder, dtype="float32"
    ).state_dict()
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []


def test_its_facts(embedded_folder: Path) -> None:
    facts = check(embedded_folder)
    assert facts.architecture == "LlamaForCausalLM"
    assert (facts.layers, facts.hidden, facts.heads, facts.key_value_heads) == (30, 576, 9, 3)
    assert (facts.vocabulary, facts.context_length, facts.dtype) == (49152, 8192, "float32")
    assert facts.parameters == 134_515_008
    assert facts.requantised_from == "Q4_1"
    assert facts.end_ids == (2,)
    assert facts.suggested_sampling is None


def test_it_is_found_again(embedded_folder: Path) -> None:
    catalogue = load_catalogue([files.shipped_catalogue()])
    assert locate(catalogue.models[0]) == embedded_folder
    standings = {model.entry.name: model.standing for model in overview(catalogue).models}
    for name in catalogue.pair("embedded").models:
        assert standings[name] == "ready"


@pytest.mark.parametrize("text", TEXTS)
def test_ids_are_those_of_the_original_rules(
    tokenizer: Tokenizer, reference: Reference, text: str
) -> None:
    assert tokenizer.encode(text).ids == reference.encode(text)


def test_known_ids_and_digits_apart(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("Hello world! 123").ids == [19556, 905, 17, 216, 33, 34, 35]
    assert tokenizer.encode("\n\n1.").tokens == ["ĊĊ", "1", "."]
    assert tokenizer.encode("<|im_start|>user").ids[0] == 1


def test_transformers_reads_the_same_tokenizer(embedded_folder: Path, tokenizer: Tokenizer) -> None:
    theirs = AutoTokenizer.from_pretrained(embedded_folder)
    for text in [*TEXTS, "<|im_start|>user\nHi<|im_end|>\n"]:
        assert theirs.encode(text) == tokenizer.encode(text).ids
    chat = [{"role": "user", "content": "Hi"}]
    written = theirs.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert written.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert "named SmolLM" in written
    assert theirs.eos_token == "<|im_end|>"


DROPPED = frozenset([0x04, 0x06, 0x13, 0x14, 0x16, 0x1D, 0xF1, 0xF2])
"""Bytes that this vocabulary has no token for: six control characters, and unassigned planes."""


def _kept(text: str) -> bool:
    return not DROPPED & set(text.encode()) and "<" not in text


TEXT = st.text(st.characters(exclude_categories=["Cs"])).filter(_kept)


def test_only_these_bytes_have_no_token(reference: Reference) -> None:
    missing = {byte for byte, letter in reference.letters.items() if letter not in reference.ids}
    never_in_utf8 = {0xC0, 0xC1, *range(0xF5, 0x100)}
    assert missing == DROPPED | never_in_utf8


@given(TEXT)
@settings(deadline=None)
def test_every_text_comes_back(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


@given(st.text(st.sampled_from("ab 1½\n\r\t.'s-é模🙂²Ⅷ")) | TEXT)
@settings(deadline=None)
def test_any_ids_are_those_of_the_original_rules(
    tokenizer: Tokenizer, reference: Reference, text: str
) -> None:
    assert tokenizer.encode(text).ids == reference.encode(text)
