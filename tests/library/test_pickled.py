"""The command that is offered for pickled weights: it works as printed, and runs no code."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from app.library.pickled import conversion_command
from app.library.preflight import check
from app.run.problems import Problem

Make = Callable[..., Path]


def run(command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, shell=True, capture_output=True, timeout=120)


def pickled(folder: Path, *shards: dict[str, object]) -> Path:
    (folder / "model.safetensors").unlink()
    for number, shard in enumerate(shards, 1):
        torch.save(shard, folder / f"pytorch_model-{number:05}-of-{len(shards):05}.bin")
    return folder


def command_of(folder: Path) -> str:
    with pytest.raises(Problem, match="pickle") as caught:
        check(folder)
    command = conversion_command(folder)
    assert caught.value.remedy.endswith(command)
    return command


def test_the_printed_command_makes_a_folder_that_loads(make_folder: Make) -> None:
    embedding = torch.randn(64, 8)
    head = embedding.view(64, 8)  # shares its memory, as tied weights do
    norm = torch.ones(8, 2)[:, 0]  # not contiguous
    folder = pickled(
        make_folder("a 'b' é [c]"),
        {"model.embed_tokens.weight": embedding, "lm_head.weight": head},
        {"model.norm.weight": norm},
    )
    done = run(command_of(folder))
    assert done.returncode == 0, done.stderr
    held = load_file(folder / "model.safetensors")
    assert held.keys() == {"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"}
    assert torch.equal(held["model.embed_tokens.weight"], embedding)
    assert torch.equal(held["lm_head.weight"], embedding)
    assert torch.equal(held["model.norm.weight"], norm)
    assert "pickled weights beside" in check(folder).notes[0]


class _Evil:
    def __init__(self, made: Path) -> None:
        self._made = made

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self._made),)


def test_a_pickle_with_code_is_not_run(make_folder: Make, tmp_path: Path) -> None:
    made = tmp_path / "made"
    folder = make_folder()
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": _Evil(made)}))
    assert run(command_of(folder)).returncode != 0
    assert not made.exists()
    assert not (folder / "model.safetensors").exists()


def test_a_frozen_program_names_any_python(
    make_folder: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert conversion_command(Path("a")).startswith("python -c ")


def test_other_pickles_have_no_command(make_folder: Make) -> None:
    folder = make_folder()
    (folder / "model.safetensors").rename(folder / "consolidated.00.pth")
    with pytest.raises(Problem, match="pickle") as caught:
        check(folder)
    assert "python" not in caught.value.remedy
