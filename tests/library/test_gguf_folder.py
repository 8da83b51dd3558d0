"""Converted GGUF files hold what transformers' own reader finds in them, and load as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFReader
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from app.library.gguf_folder import convert_gguf
from app.library.preflight import check
from app.run.events import Progress
from app.run.problems import Cancelled, Problem

Tiny = Callable[..., Path]


def convert(file: Path, folder: Path) -> Path:
    folder.mkdir()
    convert_gguf(file, folder, source="test", report=lambda _: None, pause=lambda: None)
    return folder


def weights(model: Any) -> dict[str, Any]:
    return {name: value for name, value in model.state_dict().items() if "rotary" not in name}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(
    "kind",
    [GGMLQuantizationType.F32, GGMLQuantizationType.Q8_0, GGMLQuantizationType.Q4_1],
)
def test_weights_equal_those_of_transformers(
    tmp_path: Path, tiny_gguf: Tiny, kind: GGMLQuantizationType, tied: bool
) -> None:
    file = tiny_gguf(tmp_path / "tiny.gguf", kind=kind, tied=tied)
    folder = convert(file, tmp_path / "converted")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=file.name, dtype="float32")
    ours = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    assert weights(ours).keys() == weights(theirs).keys()
    for name, value in weights(theirs).items():
        assert torch.equal(weights(ours)[name], value), name
    ids = torch.arange(10)[None]
    with torch.inference_mode():
        assert torch.equal(ours(ids).logits, theirs(ids).logits)
    assert ours.config.tie_word_embeddings is tied
    assert ours.config.rope_parameters["rope_theta"] == 5000.0
    assert ours.generation_config.do_sample is not True


def test_config_says_where_it_came_from_and_how_texts_end(tmp_path: Path, tiny_gguf: Tiny) -> None:
    folder = convert(tiny_gguf(tmp_path / "tiny.gguf"), tmp_path / "converted")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["foretoken"]["requantised_from"] == "Q8_0"
    assert len(config["foretoken"]["sha256"]) == 64
    assert config["dtype"] == "float32"
    assert (config["num_attention_heads"], config["num_key_value_heads"]) == (4, 2)
    facts = check(folder)
    assert facts.end_ids == (259, 260)
    assert facts.requantised_from == "Q8_0"
    assert facts.dtype == "float32"
    assert facts.suggested_sampling is None


def test_the_tokenizer_loads_and_renders(tmp_path: Path, tiny_gguf: Tiny) -> None:
    folder = convert(tiny_gguf(tmp_path / "tiny.gguf"), tmp_path / "converted")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.eos_token == "</s>"
    chat = [{"role": "user", "content": " a12"}]
    ids = tokenizer.apply_chat_template(chat, tokenize=True, return_dict=False)
    assert tokenizer.convert_ids_to_tokens(ids) == ["<s>", "Ġa", "1", "2", "</s>"]
    assert tokenizer.tokenize("<turn>ab") == ["<turn>", "ab"]


def test_a_beginning_is_added_if_the_file_asks_for_it(tmp_path: Path, tiny_gguf: Tiny) -> None:
    file = tiny_gguf(tmp_path / "tiny.gguf", extra={"tokenizer.ggml.add_bos_token": True})
    tokenizer = AutoTokenizer.from_pretrained(convert(file, tmp_path / "converted"))
    assert tokenizer.convert_ids_to_tokens(tokenizer.encode("ab")) == ["<s>", "ab"]


@pytest.mark.parametrize("pre", ["gpt-2", "smollm", "llama-bpe", "qwen2"])
def test_every_known_pre_tokenizer_keeps_text(tmp_path: Path, tiny_gguf: Tiny, pre: str) -> None:
    folder = convert(tiny_gguf(tmp_path / "tiny.gguf", pre=pre), tmp_path / "converted")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for text in ("ab 12345 it's\n\n  x", " a", "é模型🙂", "\t\r\n"):
        assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"architecture": "mamba"}, "'mamba'"),
        ({"pre": "tekken"}, "'tekken'"),
        ({"extra_tensor": "rope_freqs.weight"}, "'rope_freqs.weight'"),
        ({"extra": {"llama.rope.scaling.type": "yarn"}}, "'yarn'"),
    ],
)
def test_what_cannot_be_converted_is_named(
    tmp_path: Path, tiny_gguf: Tiny, options: dict[str, Any], said: str
) -> None:
    file = tiny_gguf(tmp_path / "tiny.gguf", **options)
    with pytest.raises(Problem, match=said) as caught:
        convert(file, tmp_path / "converted")
    assert caught.value.remedy


@pytest.mark.parametrize("keep", [0, 3, 20, 200, 4000, -1])
def test_a_cut_file_is_a_problem(tmp_path: Path, tiny_gguf: Tiny, keep: int) -> None:
    file = tiny_gguf(tmp_path / "tiny.gguf")
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(Problem, match=r"tiny\.gguf"):
        convert(file, tmp_path / "converted")


def test_a_pointer_is_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "tiny.gguf"
    file.write_text("version https://git-lfs.github.com/spec/v1\noid x\n", encoding="utf-8")
    with pytest.raises(Problem, match="LFS pointer"):
        convert(file, tmp_path / "converted")


def test_it_can_be_cancelled_between_tensors_and_reports_bytes(
    tmp_path: Path, tiny_gguf: Tiny
) -> None:
    file = tiny_gguf(tmp_path / "tiny.gguf")
    reports: list[Progress] = []

    def pause() -> None:
        if len(reports) > 5:
            raise Cancelled

    (tmp_path / "converted").mkdir()
    with pytest.raises(Cancelled):
        convert_gguf(file, tmp_path / "converted", source="", report=reports.append, pause=pause)
    whole = load_file(convert(file, tmp_path / "whole") / "model.safetensors")
    assert reports[-1].total == sum(value.nbytes for value in whole.values())
    assert 0 < reports[-1].done < reports[-1].total


def test_a_full_disk_is_foreseen(
    tmp_path: Path, tiny_gguf: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tiny_gguf(tmp_path / "tiny.gguf")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=100))
    with pytest.raises(Problem, match="are needed"):
        convert(file, tmp_path / "converted")


def test_rows_are_put_apart_as_rotary_embedding_wants(tmp_path: Path, tiny_gguf: Tiny) -> None:
    plain = tiny_gguf(tmp_path / "tiny.gguf", kind=GGMLQuantizationType.F32)
    held = load_file(convert(plain, tmp_path / "converted") / "model.safetensors")
    tensor = next(t for t in GGUFReader(plain).tensors if t.name == "blk.0.attn_k.weight")
    stored = np.asarray(tensor.data)
    # Two key heads of 16 rows: stored row 2i of a head is its row i, stored 2i + 1 its row 8 + i.
    for head in range(2):
        for i in range(8):
            ours = held["model.layers.0.self_attn.k_proj.weight"][16 * head :]
            assert np.array_equal(ours[i], stored[16 * head + 2 * i])
            assert np.array_equal(ours[8 + i], stored[16 * head + 2 * i + 1])


def test_a_stop_is_asked_for_at_every_step_inside_a_tensor(
    tmp_path: Path, tiny_gguf: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.library.gguf_weights._STEP", 1024)
    folder, asked = tmp_path / "converted", 0

    def pause() -> None:
        nonlocal asked
        asked += 1

    folder.mkdir()
    file = tiny_gguf(tmp_path / "tiny.gguf")
    convert_gguf(file, folder, source="test", report=lambda _: None, pause=pause)
    written = sum(value.nbytes for value in load_file(folder / "model.safetensors").values())
    largest = max(value.nbytes for value in load_file(folder / "model.safetensors").values())
    assert largest > 8 * 1024
    assert asked >= written / 1024
