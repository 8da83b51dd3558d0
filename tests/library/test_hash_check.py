"""Files are compared with the hashes that the Hub has for them, only when it is asked for."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from app.library.catalogue import Catalogue
from app.library.checking import check_named
from app.library.content_hash import content_digest
from app.library.entries import HubSource, ModelEntry
from app.library.hash_check import HashCheck, check_hashes, files_of
from app.library.sources import fetch
from app.run.problems import Cancelled
from hub_stand_in import HubStandIn

Make = Callable[..., Path]
ENTRY = ModelEntry("tiny", "Tiny", HubSource("org/name"))
NAMES = ("config.json", "model.safetensors", "tokenizer.json")


def compared(place: Path) -> HashCheck:
    return check_hashes(place, report=lambda _: None, pause=lambda: None)


@pytest.fixture
def folder(hub: HubStandIn, make_folder: Make) -> Path:
    """A model that was fetched from the hub."""
    hub.put("org/name", {path.name: path.read_bytes() for path in make_folder().iterdir()})
    return fetch(ENTRY, lambda _: None, pause=lambda: None)


def test_hashes_are_those_of_git_and_of_sha256sum(tmp_path: Path) -> None:
    file = tmp_path / "é"
    file.write_bytes(b"hello\n" * 100_000)
    git = subprocess.run(["git", "hash-object", file], capture_output=True, text=True, check=True)
    assert content_digest(file, like="0" * 40, pause=lambda: None) == git.stdout.strip()
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    assert content_digest(file, like="0" * 64, pause=lambda: None) == sha256


def test_a_snapshot_is_compared_without_the_network(hub: HubStandIn, folder: Path) -> None:
    hub.stop()
    assert compared(folder) == HashCheck(right=NAMES)
    weights = (folder / "model.safetensors").resolve()
    spoilt = bytearray(weights.read_bytes())
    spoilt[-1] ^= 1
    weights.write_bytes(spoilt)
    assert compared(folder).wrong == ("model.safetensors",)


def test_a_cache_that_was_copied_without_its_links_is_compared_with_the_hub(
    hub: HubStandIn, folder: Path
) -> None:
    for file in folder.iterdir():
        content = file.read_bytes()
        file.unlink()
        file.write_bytes(content)
    (folder / "config.json").write_bytes(b"{}")
    (folder / "notes.txt").write_bytes(b"mine")
    found = compared(folder)
    assert (found.wrong, found.unknown) == (("config.json",), ("notes.txt",))
    hub.stop()
    assert compared(folder).unknown == (*NAMES[:2], "notes.txt", NAMES[2])


def test_a_folder_of_ones_own_has_nothing_to_be_compared_with(
    hub: HubStandIn, make_folder: Make
) -> None:
    assert compared(make_folder("own")) == HashCheck(unknown=NAMES)
    assert hub.asked == []


def test_of_a_converted_model_the_file_that_came_is_compared(
    hub: HubStandIn, tiny_gguf: Make, tmp_path: Path
) -> None:
    hub.put("org/name", {"a.gguf": tiny_gguf(tmp_path / "a.gguf").read_bytes()})
    fetch(ENTRY, lambda _: None, pause=lambda: None)
    catalogue = Catalogue((ENTRY,))
    (place,) = files_of(catalogue, check_named(catalogue, "tiny")).values()
    assert compared(place) == HashCheck(right=("a.gguf",))


def test_it_can_be_stopped(folder: Path) -> None:
    def pause() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        check_hashes(folder, report=lambda _: None, pause=pause)
