"""A folder that cannot be loaded is refused before anything is loaded, and told why."""

from __future__ import annotations

import json
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from app.library.compatibility import report
from app.library.preflight import check
from app.run.problems import Problem
from app.run.settings import Sampling

Make = Callable[..., Path]


def write(file: Path, content: object) -> None:
    file.write_text(json.dumps(content), encoding="utf-8")


def refusal(folder: Path) -> str:
    with pytest.raises(Problem) as caught:
        check(folder)
    assert caught.value.remedy
    return str(caught.value)


def test_a_whole_folder_tells_its_facts(make_folder: Make) -> None:
    folder = make_folder()
    facts = check(folder)
    assert (facts.architecture, facts.model_type) == ("LlamaForCausalLM", "llama")
    assert (facts.vocabulary, facts.context_length, facts.dtype) == (64, 128, "float32")
    assert (facts.layers, facts.hidden, facts.heads, facts.key_value_heads) == (1, 8, 2, 2)
    assert (facts.parameters, facts.weight_bytes) == (64 * 8 + 8, 4 * (64 * 8 + 8))
    assert facts.weight_files == (folder / "model.safetensors",)
    assert facts.tokenizer == folder / "tokenizer.json"
    assert (facts.requantised_from, facts.quantised, facts.suggested_sampling) == (None,) * 3
    assert (facts.end_ids, facts.notes) == ((57,), ())


class TestConfig:
    def test_missing(self, make_folder: Make) -> None:
        folder = make_folder()
        (folder / "config.json").unlink()
        assert "config.json is missing" in refusal(folder)

    def test_a_login_page(self, make_folder: Make) -> None:
        folder = make_folder()
        (folder / "config.json").write_text("<html>\n<body>Log in", encoding="utf-8")
        assert "config.json is not JSON (starts with '<html>')" in refusal(folder)

    @pytest.mark.parametrize("content", ["", "[]", '{"vocab_size": "many"}', "{", "\0\0"])
    def test_other_content(self, make_folder: Make, content: str) -> None:
        folder = make_folder()
        (folder / "config.json").write_text(content, encoding="utf-8")
        assert "config.json" in refusal(folder)

    def test_an_edited_vocabulary(self, make_folder: Make) -> None:
        folder = make_folder(config={"vocab_size": 70})
        assert "a vocabulary of 70, but the weights hold 64 rows" in refusal(folder)

    def test_nested_text_config(self, make_folder: Make) -> None:
        text = {"vocab_size": 64, "max_position_embeddings": 99, "eos_token_id": [3, 4]}
        facts = check(make_folder(config={"text_config": text, "eos_token_id": None}))
        assert (facts.context_length, facts.end_ids) == (99, (3, 4))

    def test_code_of_its_own_is_never_run(self, make_folder: Make) -> None:
        facts = check(make_folder(config={"auto_map": {"AutoModel": "modeling.Mine"}}))
        assert "never run" in facts.notes[0]

    @pytest.mark.parametrize("named", [{"AutoTokenizer": ["mine.Mine", None]}, ["mine.Mine", None]])
    def test_code_of_the_tokenizers_own_is_no_fault(self, make_folder: Make, named: object) -> None:
        folder = make_folder()
        write(folder / "tokenizer_config.json", {"auto_map": named, "eos_token": "</s>"})
        assert check(folder).end_ids == (57,)

    def test_own_quantisation_is_named(self, make_folder: Make) -> None:
        facts = check(make_folder(config={"quantization_config": {"quant_method": "fp8"}}))
        assert facts.quantised is not None
        assert facts.quantised.method == "fp8"

    @pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "generation_config.json"])
    def test_nested_without_end(self, make_folder: Make, name: str) -> None:
        folder = make_folder()
        deep = "[" * 100_000 + "]" * 100_000
        (folder / name).write_text(f'{{"something": {deep}}}', encoding="utf-8")
        assert "is not JSON" in refusal(folder)

    @pytest.mark.parametrize("layers", [10**9, 10**30, -1])
    def test_layers_without_end(self, make_folder: Make, layers: int) -> None:
        folder = make_folder(config={"num_hidden_layers": layers})
        assert f"{layers} layers, but the weights hold 2 tensors" in refusal(folder)


class TestWeights:
    @pytest.mark.parametrize(
        "place",
        [
            {"shape": []},
            {"shape": [64, 7]},
            {"shape": [-64, -8]},
            {"data_offsets": [-1, 2047]},
            {"data_offsets": [2048, 0]},
            {"dtype": "BF16"},
        ],
    )
    def test_a_tensor_that_cannot_lie_where_it_should(
        self, make_folder: Make, place: dict[str, object]
    ) -> None:
        file = make_folder() / "model.safetensors"
        whole = file.read_bytes()
        length = int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8 : 8 + length])
        header["model.embed_tokens.weight"].update(place)
        spoilt = json.dumps(header).encode()
        file.write_bytes(struct.pack("<Q", len(spoilt)) + spoilt + whole[8 + length :])
        assert "has a broken header: 'model.embed_tokens.weight'" in refusal(file.parent)

    def test_empty(self, make_folder: Make) -> None:
        folder = make_folder()
        (folder / "model.safetensors").write_bytes(b"")
        assert "model.safetensors is empty" in refusal(folder)

    def test_pointer(self, make_folder: Make) -> None:
        folder = make_folder()
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
        (folder / "model.safetensors").write_bytes(pointer)
        assert "Git LFS pointer" in refusal(folder)

    @pytest.mark.parametrize("keep", [3, 8, 40, 0.5, -1])
    def test_cut(self, make_folder: Make, keep: float) -> None:
        file = make_folder() / "model.safetensors"
        whole = file.read_bytes()
        file.write_bytes(whole[: int(len(whole) * keep) if keep == 0.5 else int(keep)])
        said = refusal(file.parent)
        assert "cut short" in said
        assert str(file) in said

    def test_longer_than_it_says(self, make_folder: Make) -> None:
        file = make_folder() / "model.safetensors"
        file.write_bytes(file.read_bytes() + b"more")
        assert "longer than its header says" in refusal(file.parent)

    def test_a_huge_header_costs_no_memory(self, make_folder: Make) -> None:
        folder = make_folder()
        (folder / "model.safetensors").write_bytes(b"\xff" * 4096)
        tracemalloc.start()
        assert "not a safetensors file" in refusal(folder)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        tracemalloc.stop()

    @pytest.mark.parametrize(
        "header", [b"nonsense", b"[]", b'{"a": 1}', b'{"a": {"dtype": "F32"}}']
    )
    def test_a_broken_header(self, make_folder: Make, header: bytes) -> None:
        folder = make_folder()
        data = struct.pack("<Q", len(header)) + header
        (folder / "model.safetensors").write_bytes(data)
        assert "broken header" in refusal(folder)

    def test_a_folder_of_that_name(self, make_folder: Make) -> None:
        folder = make_folder()
        (folder / "model.safetensors").unlink()
        (folder / "model.safetensors").mkdir()
        assert "is a folder" in refusal(folder)

    def test_none(self, make_folder: Make) -> None:
        folder = make_folder()
        (folder / "model.safetensors").rename(folder / "weights.safetensors")
        said = refusal(folder)
        assert "model.safetensors is missing" in said
        assert "weights.safetensors" in said

    def test_a_file_that_may_not_be_read(
        self, make_folder: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        folder = make_folder()
        monkeypatch.setattr(Path, "open", refuse)
        assert "Permission denied" in refusal(folder)

    def test_pickle_alone(self, make_folder: Make) -> None:
        folder = make_folder()
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
        assert "pickle (pytorch_model.bin)" in refusal(folder)

    def test_pickle_beside(self, make_folder: Make) -> None:
        folder = make_folder()
        (folder / "pytorch_model.bin").touch()
        assert "not used" in check(folder).notes[0]

    def test_unfinished_downloads_are_named(self, make_folder: Make) -> None:
        folder = make_folder()
        (folder / "model.safetensors.incomplete").touch()
        assert "model.safetensors.incomplete" in check(folder).notes[0]
        (folder / "model.safetensors").unlink()
        assert "Unfinished: model.safetensors.incomplete" in refusal(folder)


class TestShards:
    @pytest.fixture
    def folder(self, make_folder: Make) -> Path:
        """A whole folder of two shards."""
        folder = make_folder()
        (folder / "model.safetensors").unlink()
        names = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
        embedding = {"model.embed_tokens.weight": np.zeros((64, 8), dtype=np.float16)}
        save_file(embedding, folder / names[0])
        save_file({"model.norm.weight": np.ones(8, dtype=np.float32)}, folder / names[1])
        places = {"model.embed_tokens.weight": names[0], "model.norm.weight": names[1]}
        write(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": places})
        return folder

    def test_whole(self, folder: Path) -> None:
        facts = check(folder)
        assert len(facts.weight_files) == 2
        assert (facts.dtype, facts.parameters) == ("float16", 520)
        assert facts.weight_bytes == 2 * 512 + 4 * 8

    def test_one_missing(self, folder: Path) -> None:
        (folder / "model-00002-of-00002.safetensors").unlink()
        (folder / "model-00002-of-00002.safetensors.incomplete").touch()
        said = refusal(folder)
        assert "1 of 2 weight files are missing" in said
        assert "model-00002-of-00002.safetensors." in said
        assert "Unfinished" in said

    def test_an_index_of_more_files_than_there_are(self, folder: Path) -> None:
        places = {f"t{n}": f"model-{n:05}-of-00030.safetensors" for n in range(30)}
        write(folder / "model.safetensors.index.json", {"weight_map": places})
        assert "30 of 30 weight files are missing" in refusal(folder)

    def test_an_index_of_another_version(self, folder: Path) -> None:
        places = {"other": "model-00001-of-00002.safetensors"}
        write(folder / "model.safetensors.index.json", {"weight_map": places})
        assert "places other in files that do not hold them" in refusal(folder)

    def test_an_index_that_is_none(self, folder: Path) -> None:
        (folder / "model.safetensors.index.json").write_text("<html>", encoding="utf-8")
        assert "not a valid index" in refusal(folder)

    def test_a_stale_index_beside_a_single_file(self, folder: Path) -> None:
        whole = {"model.embed_tokens.weight": np.zeros((64, 8), dtype=np.float32)}
        save_file(whole, folder / "model.safetensors")
        facts = check(folder)
        assert facts.weight_files == (folder / "model.safetensors",)
        assert "index of shards" in facts.notes[0]


class TestTokenizer:
    def test_missing(self, make_folder: Make) -> None:
        folder = make_folder()
        (folder / "tokenizer.json").unlink()
        said = refusal(folder)
        assert "tokenizer.json or tokenizer.model is needed" in said
        assert "config.json, model.safetensors" in said
        assert check(folder, needs_tokenizer=False).tokenizer is None

    def test_sentencepiece(self, make_folder: Make) -> None:
        folder = make_folder()
        (folder / "tokenizer.json").rename(folder / "tokenizer.model")
        assert check(folder).tokenizer == folder / "tokenizer.model"


def test_a_tokenizer_with_code_of_its_own_is_no_reason_to_refuse_a_folder(
    make_folder: Make,
) -> None:
    folder = make_folder()
    code = {"AutoTokenizer": ["tokenization_own.OwnTokenizer", None]}
    write(folder / "tokenizer_config.json", {"eos_token": "<s>", "auto_map": code})
    assert check(folder).end_ids == (56, 57)


def test_ends_are_gathered_from_every_file(make_folder: Make) -> None:
    folder = make_folder(generation={"eos_token_id": [9, 57]}, config={"eos_token_id": 3})
    assert check(folder).end_ids == (3, 9, 57)
    for end in ("<s>", {"content": "<s>", "lstrip": False}):
        write(folder / "tokenizer_config.json", {"eos_token": end})
        assert check(folder).end_ids == (3, 9, 56, 57)


@pytest.mark.parametrize(
    ("said", "suggested"),
    [
        (None, None),
        ({"eos_token_id": 1, "bos_token_id": 2}, None),
        (
            {"do_sample": True, "top_k": 20, "top_p": 0.8, "repetition_penalty": 1.3},
            Sampling(temperature=1.0, top_k=20, top_p=0.8, repetition_penalty=1.3),
        ),
        (
            {"do_sample": True, "temperature": 0.6, "min_p": 0.1},
            Sampling(temperature=0.6, min_p=0.1),
        ),
        ({"do_sample": False, "top_k": 20}, Sampling()),
        ({"repetition_penalty": 1.3}, Sampling(repetition_penalty=1.3)),
    ],
)
def test_hidden_sampling_is_brought_to_light(
    make_folder: Make, said: dict[str, object] | None, suggested: Sampling | None
) -> None:
    assert check(make_folder(generation=said)).suggested_sampling == suggested


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"model_type": "mamba2"}, "mamba2"),
        ({"layer_types": ["full_attention", "linear_attention"]}, "linear_attention"),
        ({"layer_types": ["conv", "full_attention"]}, "conv"),
        ({"layer_types": ["sliding_attention", "full_attention"]}, ""),
        ({"layer_types": 7}, ""),
        ({}, ""),
    ],
)
def test_layers_that_keep_a_state_are_told_before_anything_is_loaded(
    make_folder: Callable[..., Path], changes: dict[str, object], state: str
) -> None:
    folder = make_folder(config=changes)
    found = check(folder)
    assert found.stateful == state
    assert any("without speculation" in note for note in found.notes) == bool(state)
    told = report(folder, folder)
    assert told.fits == (not state)
    assert told.reason.count("keeps a state") == (2 if state else 0)
