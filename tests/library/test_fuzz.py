"""Spoilt files: every one is read, or refused in words; nothing crashes, hangs, or is written."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from app.library.catalogue import load_catalogue
from app.library.compatibility import report
from app.library.head_folder import HeadShape, MadeFor, check_head
from app.library.preflight import check
from app.models.draft_head import DraftHead
from app.models.head_file import read_head, save_head
from app.models.loaded_head import LoadedHead
from app.models.tokenizer import Tokenizer
from app.run.problems import Problem
from mutations import mutations
from published_heads import third_version
from toys import tiny_llama

COUNT = 1000
_SECONDS = 2.0
"""Processor time that a spoilt file may take; whole ones take milliseconds."""

_WRITES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate")
_FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect")
_watch: dict[str, object] = {"inside": None, "seen": []}


def _look(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook: it cannot be taken out again, so it sleeps between the tests."""
    inside, seen = _watch["inside"], _watch["seen"]
    if inside is None or not isinstance(seen, list):
        return
    path = str(arguments[0]) if arguments else ""
    if event == "open":
        flags = arguments[2] if isinstance(arguments[2], int) else 0
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    else:
        writes = event in _WRITES
    if event in _FORBIDDEN or (writes and not path.startswith(str(inside))):
        seen.append(f"{event} {path}")


sys.addaudithook(_look)


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """Tries something with every spoilt version of a file; tells how many were refused.

    With the whole file it has to work.
    """
    monkeypatch.setenv("FORETOKEN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def try_all(file: Path, spoilt: Iterator[bytes], do: Callable[[], object]) -> int:
        do()
        refused = unhelpful = 0
        _watch["inside"], _watch["seen"] = tmp_path, []
        for number, content in enumerate(spoilt):
            file.write_bytes(content)
            start = time.process_time()
            try:
                do()
            except Problem as problem:
                refused += 1
                unhelpful += not (problem.message and problem.remedy)
            except BaseException as error:
                error.add_note(f"mutation {number}: {content[:400]!r}")
                raise
            assert time.process_time() - start < _SECONDS, (number, content[:400])
        assert _watch["seen"] == []
        assert unhelpful == 0
        return refused

    faulthandler.dump_traceback_later(240, exit=True)
    yield try_all
    faulthandler.cancel_dump_traceback_later()
    _watch["inside"] = None


CATALOGUE = b"""\
default: mine
models:
  target: {title: "Target \\u00e9", source: {folder: ~/models/target}}
  draft:
    title: 'Draft'
    source:
      hub: owner/name
      revision: main
    licence: MIT
    gated: true
    download_bytes: 123
    shape: {parameters: 9, layers: 1, hidden: 2, heads: 2, key_value_heads: 1, head_size: 1,
      intermediate: 4, vocabulary: 3, tied: false}
    facts_from: here
  head: {title: Head, source: {folder: heads/one}}
pairs:
  mine: &pair
    title: Mine
    target: target
    method: draft-model
    draft: draft
    head: head
    draft_length: 4
    draft_precision: fp32
  other: *pair
"""


def test_catalogues(tmp_path: Path, watched: Callable[..., int]) -> None:
    file = tmp_path / "models.yaml"
    file.write_bytes(CATALOGUE)
    found = []

    def read() -> None:
        catalogue = load_catalogue([file])
        found.append(len(catalogue.faults))
        assert all(fault.message and fault.line and fault.column for fault in catalogue.faults)

    spoilt = mutations(CATALOGUE, 1, COUNT, deep=100)  # more would take a second each
    assert watched(file, spoilt, read) == 0
    assert found[0] == 0
    assert sum(map(bool, found)) > COUNT / 2


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "tokenizer_config.json"])
def test_json_of_a_model(
    name: str, make_folder: Callable[..., Path], watched: Callable[..., int]
) -> None:
    folder = make_folder(
        config={
            "text_config": None,
            "quantization_config": {"quant_method": "fp8", "ignored": ["a"], "load_in_4bit": False},
            "rope_parameters": {"a": [1]},
        },
        generation={"do_sample": True, "temperature": 0.5, "top_k": 3, "eos_token_id": [1, 2]},
    )
    file = folder / name
    if name == "tokenizer_config.json":
        file.write_text('{"eos_token": {"content": "</s>"}, "auto_map": {}}', encoding="utf-8")
    spoilt = mutations(file.read_bytes(), 2, COUNT)
    assert watched(file, spoilt, lambda: check(folder)) > COUNT / 5


def test_headers_of_weights(make_folder: Callable[..., Path], watched: Callable[..., int]) -> None:
    folder = make_folder()
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header, data = whole[8 : 8 + length], whole[8 + length :]

    def files() -> Iterator[bytes]:
        for number, spoilt in enumerate(mutations(header, 3, COUNT)):
            # As often as not the length before the header is that of the spoilt one.
            start = whole[:8] if number % 4 == 0 else len(spoilt).to_bytes(8, "little")
            yield start + spoilt + data

    assert watched(file, files(), lambda: check(folder)) > COUNT / 2


def test_indices_of_shards(make_folder: Callable[..., Path], watched: Callable[..., int]) -> None:
    folder = make_folder()
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    names = ("model.embed_tokens.weight", "model.norm.weight")
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(names, "a.safetensors")}
    file = folder / "model.safetensors.index.json"
    file.write_text(json.dumps(index), encoding="utf-8")
    spoilt = mutations(file.read_bytes(), 4, COUNT)
    assert watched(file, spoilt, lambda: check(folder)) > COUNT / 2


def test_tokenizers(make_folder: Callable[..., Path], watched: Callable[..., int]) -> None:
    folder, target = make_folder(), make_folder("target", hidden=16)
    file = folder / "tokenizer.json"
    spoilt = mutations(file.read_bytes(), 5, COUNT // 4)

    def read() -> None:
        check(folder)
        assert report(target, folder).sentence
        tokenizer = Tokenizer(folder)
        ids = tokenizer.encode_prompt("Hello <s> 1", raw=True)
        tokenizer.decode(ids)

    assert watched(file, spoilt, read) > COUNT / 10


def write_head(folder: Path) -> None:
    shape = HeadShape(
        hidden=8,
        intermediate=8,
        heads=2,
        shared_heads=1,
        head_size=4,
        norm_epsilon=1e-5,
        biased=True,
        normed=True,
        vocabulary=3,
    )
    made_for = MadeFor("Target", "0" * 64, 9)
    save_head(folder, DraftHead(shape), torch.tensor([1, 4, 7]), made_for, "Not at all.")


def test_heads(tmp_path: Path, watched: Callable[..., int]) -> None:
    folder = tmp_path / "head"
    write_head(folder)
    file = folder / "head.json"
    spoilt = mutations(file.read_bytes(), 6, COUNT)
    assert watched(file, spoilt, lambda: check_head(folder)) > COUNT / 2


def test_weights_of_heads(tmp_path: Path, watched: Callable[..., int]) -> None:
    folder = tmp_path / "head"
    write_head(folder)
    file = folder / "head.safetensors"
    spoilt = mutations(file.read_bytes(), 7, COUNT // 4)
    assert watched(file, spoilt, lambda: read_head(check_head(folder))) > COUNT / 10


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_published_heads(name: str, tmp_path: Path, watched: Callable[..., int]) -> None:
    target = tiny_llama(0, hidden_size=32, num_hidden_layers=3)
    rotary = {"rope_type": "linear", "factor": 2.0}
    layers = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1, 1]}}
    third_version(tmp_path, 64, ids=list(range(9)), rope_parameters=rotary, fc_norm=True, **layers)
    file = tmp_path / name
    whole = file.read_bytes()
    length = 8 + int.from_bytes(whole[:8], "little") if name == "model.safetensors" else len(whole)
    spoilt = (one + whole[length:] for one in mutations(whole[:length], 8, COUNT // 4))

    def read() -> None:
        head = LoadedHead(check_head(tmp_path), target)
        session = head.open_target(4)
        session.read([1, 2], rows=1)
        head.open(session, 4).read([1, 2, 3], rows=1)

    assert watched(file, spoilt, read) > COUNT / 10
