"""A draft may guess for a target if every ordinary id means the same to both."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, normalizers

from app.library.compatibility import compare
from app.run.problems import Problem

Make = Callable[..., Path]
Letters = Callable[..., Tokenizer]


def test_padding_is_no_difference(make_folder: Make) -> None:
    target, draft = make_folder("target", hidden=16), make_folder("draft", vocabulary=60)
    for first, second in ((target, draft), (draft, target)):
        assert compare(first, second).verdict == "same"
    assert compare(target, draft).warnings == ()


@given(places=st.tuples(st.integers(0, 55), st.integers(0, 55)).filter(lambda p: p[0] != p[1]))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_swapped_ids_are_refused_naming_the_first(
    make_folder: Make,
    byte_tokenizer: Letters,
    tmp_path_factory: pytest.TempPathFactory,
    places: tuple[int, int],
) -> None:
    name = tmp_path_factory.mktemp("pair").name
    target = make_folder(f"{name}/target")
    draft = make_folder(f"{name}/draft", tokenizer=byte_tokenizer(swap=places))
    first = min(places)
    ours, theirs = (
        Tokenizer.from_file(str(folder / "tokenizer.json")).id_to_token(first)
        for folder in (target, draft)
    )
    found = compare(target, draft)
    assert found.verdict == "refused"
    said = f"Id {first} means {ours!r} to the target and {theirs!r} to the draft; 2 ids differ."
    assert found.reason == said


@pytest.mark.parametrize("added", [("<s>", "</s>", "<extra>"), ("<s>",), ("<s>", "<end>")])
def test_other_added_tokens_are_allowed_with_a_warning(
    make_folder: Make, byte_tokenizer: Letters, added: tuple[str, ...]
) -> None:
    target = make_folder("target", hidden=16)
    draft = make_folder("draft", tokenizer=byte_tokenizer(added=added))
    found = compare(target, draft)
    assert found.verdict == "same"
    (warning,) = found.warnings
    assert "1 added tokens differ" in warning
    assert "target's meaning counts" in warning


def test_another_end_alone_is_allowed_with_a_warning(make_folder: Make) -> None:
    target = make_folder("target", hidden=16)
    draft = make_folder("draft", config={"eos_token_id": 56})
    found = compare(target, draft)
    assert (found.verdict, len(found.warnings)) == ("same", 1)
    assert "by ids 56, the target by 57" in found.warnings[0]


def test_an_ordinary_id_that_one_lacks_is_refused(
    make_folder: Make, byte_tokenizer: Letters
) -> None:
    shorter = byte_tokenizer(added=())
    model = json.loads(shorter.to_str())
    letter, id_ = max(model["model"]["vocab"].items(), key=lambda item: item[1])
    del model["model"]["vocab"][letter]
    target = make_folder("target", tokenizer=shorter)
    draft = make_folder("draft", tokenizer=Tokenizer.from_str(json.dumps(model)))
    found = compare(target, draft)
    assert found.verdict == "refused"
    assert f"Id {id_} means {letter!r} to the target and nothing to the draft" in found.reason


def test_how_text_is_cut_does_not_matter(make_folder: Make, byte_tokenizer: Letters) -> None:
    other = byte_tokenizer()
    other.normalizer = normalizers.Lowercase()
    target = make_folder("target", hidden=16)
    assert compare(target, make_folder("draft", tokenizer=other)).warnings == ()


def test_a_token_that_is_added_on_one_side_only_but_means_the_same(
    make_folder: Make, byte_tokenizer: Letters
) -> None:
    marked = byte_tokenizer()
    marked.add_special_tokens([AddedToken(marked.id_to_token(3), special=True)])
    target = make_folder("target", hidden=16)
    assert compare(target, make_folder("draft", tokenizer=marked)).verdict == "same"


def test_a_model_beside_itself_gains_nothing(make_folder: Make) -> None:
    folder = make_folder()
    for other in (folder, folder.parent / "." / folder.name):
        found = compare(folder, other)
        assert found.verdict == "same"
        assert "the same model: no speed-up is possible" in found.warnings[0]


def test_a_draft_larger_than_its_target_gains_nothing(make_folder: Make) -> None:
    small, large = make_folder("small"), make_folder("large", hidden=16)
    found = compare(small, large)
    assert found.verdict == "same"
    assert "no speed-up is possible" in found.warnings[0]
    assert "1,040" in found.warnings[0]


def test_a_draft_without_tokenizer_needs_the_same_size(make_folder: Make) -> None:
    target = make_folder("target", hidden=16)
    same, other = make_folder("same"), make_folder("other", vocabulary=60)
    for folder in (same, other):
        (folder / "tokenizer.json").unlink()
    found = compare(target, same)
    assert found.verdict == "same"
    assert "is assumed" in found.warnings[0]
    assert "vocabulary of 60 is not the target's 64" in compare(target, other).reason
    with pytest.raises(Problem, match="Tokenizer files are missing"):
        compare(same, target)


def test_a_tokenizer_that_cannot_be_read_is_a_problem(make_folder: Make) -> None:
    target, draft = make_folder("target"), make_folder("draft")
    (draft / "tokenizer.json").write_text('{"model": 3}', encoding="utf-8")
    with pytest.raises(Problem, match="cannot be read"):
        compare(target, draft)


def test_sentencepiece_files_are_compared_byte_by_byte(make_folder: Make) -> None:
    target, draft = make_folder("target", hidden=16), make_folder("draft")
    for folder in (target, draft):
        (folder / "tokenizer.json").unlink()
        (folder / "tokenizer.model").write_bytes(b"one")
    assert compare(target, draft).verdict == "same"
    (draft / "tokenizer.model").write_bytes(b"two")
    assert compare(target, draft).verdict == "refused"
