"""The check of a model or of a pair: each failure with its remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from app.library.catalogue import Catalogue
from app.library.checking import check_named
from app.library.comparing import compare_named
from app.library.entries import FolderSource, ModelEntry, PairEntry, WheelSource
from app.run.problems import Problem

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def _own_home(home: Path) -> None:
    """No test touches the person's own."""


def pair_of(target: Path, draft: Path) -> Catalogue:
    models = tuple(
        ModelEntry(name, name, FolderSource(str(path)))
        for name, path in (("big", target), ("small", draft))
    )
    return Catalogue(models, (PairEntry("pair", "Pair", "big", "draft-model", "small"),))


def test_a_pair_that_fits(make_folder: Make) -> None:
    found = check_named(pair_of(make_folder("a", vocabulary=80), make_folder("b")), "pair")
    assert [(one.role, one.name, one.reason) for one in found.models] == [
        ("target", "big", ""),
        ("draft", "small", ""),
    ]
    assert found.usable
    assert found.together == "Target and draft fit each other."
    assert found.warnings == ()


def test_a_pair_whose_ids_differ(
    make_folder: Make, byte_tokenizer: Callable[..., Tokenizer]
) -> None:
    other = make_folder("b", tokenizer=byte_tokenizer(swap=(3, 4)))
    found = check_named(pair_of(make_folder("a"), other), "pair")
    assert not found.usable
    assert "id 3 means" in found.together
    assert found.remedy
    assert all(not one.reason for one in found.models)


def test_each_broken_model_of_a_pair_is_told(make_folder: Make, tmp_path: Path) -> None:
    broken = make_folder("a", config={"vocab_size": 70})
    found = check_named(pair_of(broken, tmp_path / "no such"), "pair")
    assert not found.usable
    reasons = [one.reason for one in found.models]
    assert "vocabulary of 70" in reasons[0]
    assert "There is no folder" in reasons[1]
    assert all(one.remedy for one in found.models)
    assert "cannot be told" in found.together


def test_a_gguf_is_compared_once_it_is_converted(
    make_folder: Make, tiny_gguf: Make, tmp_path: Path
) -> None:
    found = check_named(pair_of(make_folder("a"), tiny_gguf(tmp_path / "b.gguf")), "pair")
    assert found.usable
    assert "once small is converted (`foretoken models fetch small`)" in found.together


def test_a_model_is_no_head(make_folder: Make) -> None:
    models = tuple(
        ModelEntry(name, name, FolderSource(str(make_folder(name)))) for name in ("a", "b")
    )
    pair = PairEntry("p", "P", "a", "ngram-else-head", head="b")
    found = check_named(Catalogue(models, (pair,)), "p")
    assert [one.reason for one in found.models] == ["", "It is a model, not a draft head."]


def test_a_head_is_held_against_its_target(make_folder: Make, make_head: Make) -> None:
    places = {"a": make_folder("a"), "fit": make_head("fit"), "other": make_head("b", hidden=16)}
    models = tuple(ModelEntry(name, name, FolderSource(str(at))) for name, at in places.items())
    pairs = tuple(
        PairEntry(f"p-{head}", head, "a", "ngram-else-head", head=head) for head in ("fit", "other")
    )
    catalogue = Catalogue(models, pairs)
    fit = check_named(catalogue, "p-fit")
    assert fit.usable
    assert fit.together == "Target and head fit each other."
    assert "trained for other weights" in fit.warnings[0]
    other = check_named(catalogue, "p-other")
    assert not other.usable
    assert "features of 16" in other.together
    assert "foretoken train" in other.remedy


def test_what_is_not_fetched_names_the_command() -> None:
    source = WheelSource("nothing", "1.0", "0" * 64, "a.gguf")
    found = check_named(Catalogue((ModelEntry("far", "Far", source),)), "far")
    assert not found.usable
    assert "models fetch far" in found.models[0].remedy


def test_a_path_is_found_as_it_is_written(
    make_folder: Make, tiny_gguf: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_folder("with space é 模型 #1")
    file = tiny_gguf(tmp_path / "sha256-0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for written in (str(folder), f"{folder}/", folder.name, f"./{folder.name}", f"~/{folder.name}"):
        found = check_named(Catalogue(), written)
        assert found.usable, written
        assert found.models[0].model is not None
        assert found.models[0].model.path == folder
    gguf = check_named(Catalogue(), str(file))
    assert gguf.usable
    assert "converted" in gguf.models[0].notes[0]


@pytest.mark.parametrize(
    "written", ["C:\\no\\such", "./models/x", "~/no such", "a" * 5_000, "a\0b"]
)
def test_a_path_that_is_not_there(written: str) -> None:
    with pytest.raises(Problem) as caught:
        check_named(Catalogue(), written)
    assert caught.value.remedy


def test_a_misspelt_name_is_no_path() -> None:
    model = ModelEntry("known", "Known", FolderSource("/no/such"))
    with pytest.raises(Problem, match="no pair or model") as caught:
        check_named(Catalogue((model,)), "knwon")
    assert "'known'" in caught.value.remedy


def test_two_models_are_compared_by_name_or_by_path(make_folder: Make) -> None:
    target, draft = make_folder("a", vocabulary=80), make_folder("b")
    catalogue = pair_of(target, draft)
    for first, second in (("big", "small"), (str(target), "small"), ("big", str(draft))):
        found = compare_named(catalogue, first, second)
        assert found.fits
        assert (found.target.folder, found.draft.folder) == (target, draft)


def test_a_broken_folder_of_the_catalogue_is_compared_with_its_reason(make_folder: Make) -> None:
    catalogue = pair_of(make_folder("a", config={"vocab_size": 70}), make_folder("b"))
    found = compare_named(catalogue, "big", "small")
    assert found.verdict == "cannot"
    assert "vocabulary of 70" in found.reason


def test_what_cannot_be_compared_yet_says_what_to_do(
    make_folder: Make, make_head: Make, tiny_gguf: Make, tmp_path: Path
) -> None:
    catalogue = pair_of(make_folder("a"), tiny_gguf(tmp_path / "b.gguf"))
    for name, words in (
        ("small", "compared once it is"),
        (str(make_head()), "is a draft head"),
        ("bigg", "no model of the catalogue"),
        ("./no such", "There is no"),
    ):
        with pytest.raises(Problem, match=words) as caught:
            compare_named(catalogue, "big", name)
        assert caught.value.remedy
