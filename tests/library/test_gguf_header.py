"""The header reader beside the gguf library's own, and against broken files."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from gguf import GGMLQuantizationType, GGUFReader

from app.library.gguf_check import check_gguf
from app.library.gguf_header import GgufHeader, Listed
from app.library.gguf_metadata import GgufFile
from app.run.problems import Problem

Tiny = Callable[..., Path]


@pytest.mark.parametrize("kind", [GGMLQuantizationType.F32, GGMLQuantizationType.Q4_1])
def test_it_reads_what_the_librarys_reader_reads(
    tmp_path: Path, tiny_gguf: Tiny, kind: GGMLQuantizationType
) -> None:
    file = tiny_gguf(tmp_path / "a.gguf", kind=kind, extra={"general.name": "é", "a.flag": True})
    header, theirs = GgufHeader(file), GGUFReader(file)
    for key, field in theirs.fields.items():
        if key.startswith("GGUF."):
            continue
        value, expected = header.content(key), field.contents()
        assert value == (Listed(len(expected)) if isinstance(expected, list) else expected), key
    assert [
        (one.name, list(one.shape), one.tensor_type, one.n_elements, one.n_bytes)
        for one in header.tensors
    ] == [
        (one.name, list(one.shape), one.tensor_type, one.n_elements, one.n_bytes)
        for one in theirs.tensors
    ]
    assert header.quantisation == GgufFile(file).quantisation == kind.name


def test_the_facts_are_those_of_the_writer(tmp_path: Path, tiny_gguf: Tiny) -> None:
    facts = check_gguf(tiny_gguf(tmp_path / "a.gguf"))
    layer = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64 + 2 * 64
    assert facts.parameters == 261 * 64 + 2 * layer + 64
    assert facts.vocabulary == 261
    assert facts.context_length == 128


def test_every_cut_is_a_problem(tmp_path: Path, tiny_gguf: Tiny) -> None:
    content = tiny_gguf(tmp_path / "a.gguf").read_bytes()
    file = tmp_path / "cut.gguf"
    for end in range(0, len(content) - 1, 997):
        file.write_bytes(content[:end])
        with pytest.raises(Problem):
            GgufHeader(file)


def test_changed_bytes_are_read_or_a_problem(tmp_path: Path, tiny_gguf: Tiny) -> None:
    content = tiny_gguf(tmp_path / "a.gguf").read_bytes()
    file, chance = tmp_path / "changed.gguf", random.Random(0)
    refused = 0
    for _ in range(1_000):
        changed = bytearray(content)
        for _ in range(chance.choice((1, 4, 16))):
            changed[chance.randrange(8_000)] = chance.choice((0, 1, 0x7F, 0xFF))
        file.write_bytes(changed)
        try:
            check_gguf(file)
        except Problem:
            refused += 1
    assert refused > 100
