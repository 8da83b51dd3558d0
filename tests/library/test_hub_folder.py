"""Whatever of the Hub's cache is chosen as a folder works, or says what to choose instead."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from app.library.entries import FolderSource, ModelEntry
from app.library.sources import fetch
from app.run.problems import Problem

Make = Callable[..., Path]
COMMIT, OLDER = "1" * 40, "2" * 40


def chosen(path: Path) -> Path:
    entry = ModelEntry("tiny", "Tiny", FolderSource(str(path)))
    return fetch(entry, lambda _: None, pause=lambda: None)


def refused(path: Path, said: str) -> Problem:
    with pytest.raises(Problem, match=said) as caught:
        chosen(path)
    return caught.value


@pytest.fixture
def write(home: Path, make_folder: Make, tmp_path: Path) -> Callable[..., Path]:
    """Writes a repository as the Hub's library keeps one, and tells its snapshot."""

    def repository(name: str = "models--org--name", commit: str = COMMIT) -> Path:
        made = make_folder(f"made {name} {commit}")
        repo = tmp_path / "hub" / name
        snapshot = repo / "snapshots" / commit
        snapshot.mkdir(parents=True)
        for part in ("blobs", "refs"):
            (repo / part).mkdir(exist_ok=True)
        for number, file in enumerate(sorted(made.iterdir())):
            blob = repo / "blobs" / f"{number:064}"
            file.rename(blob)
            (snapshot / file.name).symlink_to(f"../../blobs/{blob.name}")
        (repo / "refs" / "main").write_text(commit, encoding="ascii")
        return snapshot

    return repository


def test_every_folder_of_a_repository_stands_for_its_snapshot(write: Make) -> None:
    snapshot = write()
    repo = snapshot.parents[1]
    for folder in (repo, snapshot.parent, repo / "refs", repo / "blobs", snapshot):
        assert chosen(folder) == snapshot


def test_a_whole_cache_stands_for_its_only_model_or_names_all(write: Make) -> None:
    snapshot = write()
    cache = snapshot.parents[2]
    assert chosen(cache) == chosen(cache.parent) == snapshot
    other = write("models--org--other").parents[1]
    problem = refused(cache, "with 2 models")
    assert str(other) in problem.remedy
    assert str(snapshot.parents[1]) in problem.remedy


def test_main_decides_between_snapshots_and_without_it_both_are_named(write: Make) -> None:
    older, snapshot = write(commit=OLDER), write()
    repo = snapshot.parents[1]
    assert chosen(repo) == snapshot
    for main in ("3" * 40, "", "../../models--org--name", "é" * 40):
        (repo / "refs" / "main").write_text(main, encoding="utf-8")
        remedy = refused(repo, "2 snapshots").remedy
        assert str(older) in remedy
        assert str(snapshot) in remedy


def test_a_ref_cannot_lead_out_of_the_snapshots(write: Make, make_folder: Make) -> None:
    snapshot = write()
    repo = snapshot.parents[1]
    elsewhere = make_folder("elsewhere")
    (repo / "refs" / "main").write_text(f"../../../{elsewhere.name}", encoding="utf-8")
    assert chosen(repo) == snapshot


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_link_whose_target_was_not_copied_is_named(write: Make, name: str) -> None:
    snapshot = write()
    (snapshot / name).resolve().unlink()
    problem = refused(snapshot.parents[1], "target of the link")
    assert str(snapshot / name) in problem.message
    assert "download the model again" in problem.remedy


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_link_that_became_a_text_is_told(write: Make, name: str) -> None:
    link = write() / name
    target = link.readlink()
    link.unlink()
    link.write_text(f"{target}\n", encoding="ascii")
    problem = refused(link.parent, "nothing but the text of a link")
    assert "links resolved" in problem.remedy


def test_a_copy_with_files_in_the_place_of_links_works(write: Make) -> None:
    snapshot = write()
    repo = snapshot.parents[1]
    copy = repo.parent / "copy of it"
    shutil.copytree(repo, copy, symlinks=False)
    shutil.rmtree(copy / "blobs")
    assert chosen(copy) == copy / "snapshots" / COMMIT


def test_a_repository_without_a_snapshot_says_so(write: Make) -> None:
    repo = write().parents[1]
    shutil.rmtree(repo / "snapshots")
    refused(repo, "without a snapshot")
    (repo / "snapshots").mkdir()
    refused(repo, "without a snapshot")


def test_a_content_names_the_folder_of_its_repository(write: Make) -> None:
    snapshot = write()
    repo = snapshot.parents[1]
    problem = refused((snapshot / "config.json").resolve(), "is a file")
    assert problem.remedy == f"Name its folder: {repo}."
