"""Two tokenizers that write the same texts in their own ways, and models that read them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import torch
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from app.library.catalogue import load_catalogue
from app.library.preflight import check
from app.library.vocabulary import Vocabulary
from app.models.spelling import Spelling
from app.models.tokenizer import Tokenizer as OurTokenizer
from app.models.vocabulary_bridge import VocabularyBridge
from app.studies.workbench import Workbench

SAID = (
    "the cat sat on the mat and the other cat ate the fat rat; that was the end of the rat. "
    "a naïve café über alles: 12 + 34 = 46, 日本語 and 🙂 too!\n\n\tindented\n"
)
END = "<|end|>"
BEGIN = "<|begin|>"
PIECE_END = "</s>"


@cache
def letters(size: int = 330) -> PreTrainedTokenizerFast:
    """Byte-level BPE in the manner of GPT-2: a space is a letter of the token behind it."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size - 2,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    inner.train_from_iterator([SAID] * 3, trainer)
    inner.add_special_tokens([AddedToken(END, special=True), AddedToken(BEGIN, special=True)])
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token=END)


@cache
def pieces(*, legacy: bool = False) -> PreTrainedTokenizerFast:
    """SentencePiece in the manner of Llama 2: ▁ for a space, one before every text, and bytes to
    fall back to. `legacy` puts that space there by its normaliser.
    """
    words = ["▁", "▁the", "▁cat", "▁c", "▁a", "at", "th", "he", "nd", "▁and", "▁rat", "ér", "▁o"]
    words += [*sorted(set("abcdefghijklmnoprstuwxyz.,;:+=1234日")), "é", "▁日", "on", "▁on", "ï"]
    tokens = [*([f"<0x{byte:02X}>" for byte in range(256)]), *dict.fromkeys(words)]
    scores = [("<unk>", 0.0), ("<s>", 0.0), (PIECE_END, 0.0)]
    scores += [(token, -20.0 if token.startswith("<0x") else -3.0 / len(token)) for token in tokens]
    inner = Tokenizer(models.Unigram(scores, unk_id=0, byte_fallback=True))
    if legacy:
        parts = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        inner.normalizer = normalizers.Sequence(parts)
    else:
        inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    inner.post_processor = processors.TemplateProcessing("<s> $A", None, [("<s>", 1)])
    inner.add_special_tokens([AddedToken(one, special=True) for one in ("<unk>", "<s>", PIECE_END)])
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", eos_token=PIECE_END, unk_token="<unk>"
    )


def letter_tokenizer(alphabet: str) -> PreTrainedTokenizerFast:
    """A token for each letter, in this order, and one that ends a text."""
    inner = Tokenizer(models.BPE({letter: id_ for id_, letter in enumerate(alphabet)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token=END)


def write_model(
    folder: Path,
    tokenizer: PreTrainedTokenizerFast,
    *,
    seed: int = 0,
    like: tuple[Path, VocabularyBridge] | None = None,
    context: int = 512,
    ends: int | None = None,
) -> Path:
    """A random Llama that reads a tokenizer's ids. `like` a target: with its weights, and its rows
    for the tokens that a bridge says are shared, so that it guesses right now and then.
    """
    config = LlamaConfig(
        vocab_size=len(tokenizer) + 3,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=context,
        eos_token_id=tokenizer.eos_token_id if ends is None else ends,
        bos_token_id=None,
    )
    torch.manual_seed(seed)
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4.0 if parameter.dim() > 1 else 1.0)
        if like is not None:
            _take_after(model, LlamaForCausalLM.from_pretrained(like[0]), like[1])
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _take_after(model: LlamaForCausalLM, other: LlamaForCausalLM, bridge: VocabularyBridge) -> None:
    model.model.layers.load_state_dict(other.model.layers.state_dict())
    mine, its = (torch.tensor(ids) for ids in (bridge.shared.draft_ids, bridge.shared.target_ids))
    for name in ("get_input_embeddings", "get_output_embeddings"):
        getattr(model, name)().weight[mine] = getattr(other, name)().weight[its]


def bridge(target: Path, draft: Path) -> VocabularyBridge:
    """Between the models in two folders."""
    sides = [check(folder) for folder in (target, draft)]
    rows = [side.vocabulary for side in sides]
    return VocabularyBridge(*sides, target_rows=rows[0], draft_rows=rows[1], differs="they differ.")


def tokenizer_folder(folder: Path, tokenizer: PreTrainedTokenizerFast) -> Path:
    """A folder that holds a tokenizer alone."""
    tokenizer.save_pretrained(folder)
    return folder


def spelling(folder: Path) -> Spelling:
    """The spelling of the tokenizer in a folder."""
    return Spelling(OurTokenizer(folder), Vocabulary(folder / "tokenizer.json"))


def write_pair(folder: Path, target, draft, *, method: str = "tli", **changes) -> Workbench:
    """A workbench with the pair `pair`: a target and a draft that takes after it."""
    write_model(folder / "target", target)
    write_model(folder / "draft", draft, seed=1)
    between = bridge(folder / "target", folder / "draft")
    write_model(folder / "draft", draft, seed=1, like=(folder / "target", between), **changes)
    models_ = {name: {"title": name, "source": {"folder": name}} for name in ("target", "draft")}
    pair = {"title": "Pair", "target": "target", "draft": "draft", "method": method}
    catalogue = folder / "models.yaml"
    catalogue.write_text(json.dumps({"models": models_, "pairs": {"pair": pair}}), "utf-8")
    found = load_catalogue([catalogue])
    assert found.faults == ()
    return Workbench(found)
