"""A draft may guess for a target if every ordinary id means the same to both; the report on two."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from app.library.compatibility import report
from app.library.compatibility_report import Meaning, Special
from app.library.vocabulary import Vocabulary

Make = Callable[..., Path]
Letters = Callable[..., Tokenizer]


def test_padding_is_no_difference(make_folder: Make) -> None:
    target, draft = make_folder("target", hidden=16), make_folder("draft", vocabulary=60)
    for first, second in ((target, draft), (draft, target)):
        assert report(first, second).verdict == "fits"
    assert report(target, draft).warnings == ()


@given(places=st.tuples(st.integers(0, 55), st.integers(0, 55)).filter(lambda p: p[0] != p[1]))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_swapped_ids_make_another_vocabulary_and_the_first_is_named(
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
    found = report(target, draft)
    assert (found.verdict, found.differing) == ("fits by intersection", 2)
    said = f"id {first} means {ours!r} to the target and {theirs!r} to the draft; 2 ids differ."
    assert found.reason.startswith(said)
    assert found.first_differing[0] == Meaning(first, ours, theirs)
    assert found.overlap is not None
    assert (found.overlap.shared, found.overlap.of_draft) == (56, 1.0)


@pytest.mark.parametrize("added", [("<s>", "</s>", "<extra>"), ("<s>",), ("<s>", "<end>")])
def test_other_added_tokens_are_allowed_with_a_warning(
    make_folder: Make, byte_tokenizer: Letters, added: tuple[str, ...]
) -> None:
    target = make_folder("target", hidden=16)
    draft = make_folder("draft", tokenizer=byte_tokenizer(added=added))
    found = report(target, draft)
    assert found.verdict == "fits"
    (warning,) = found.warnings
    assert "1 added tokens differ" in warning
    assert "target's meaning counts" in warning


def test_another_end_alone_is_allowed_with_a_warning(make_folder: Make) -> None:
    target = make_folder("target", hidden=16)
    draft = make_folder("draft", config={"eos_token_id": 56})
    found = report(target, draft)
    assert (found.verdict, len(found.warnings)) == ("fits", 1)
    assert "by ids 56, the target by 57" in found.warnings[0]


def test_an_ordinary_id_that_one_lacks_makes_another_vocabulary(
    make_folder: Make, byte_tokenizer: Letters
) -> None:
    shorter = byte_tokenizer(added=())
    model = json.loads(shorter.to_str())
    letter, id_ = max(model["model"]["vocab"].items(), key=lambda item: item[1])
    del model["model"]["vocab"][letter]
    target = make_folder("target", tokenizer=shorter)
    draft = make_folder("draft", tokenizer=Tokenizer.from_str(json.dumps(model)))
    found = report(target, draft)
    assert found.verdict == "fits by intersection"
    assert f"id {id_} means {letter!r} to the target and nothing to the draft" in found.reason


def test_how_text_is_cut_does_not_matter(make_folder: Make, byte_tokenizer: Letters) -> None:
    other = byte_tokenizer()
    other.normalizer = normalizers.Lowercase()
    target, draft = make_folder("target", hidden=16), make_folder("draft", tokenizer=other)
    assert report(target, draft).warnings == ()
    assert report(target, draft).cut_differently == ("normaliser",)
    assert report(target, target).cut_differently == ()


def test_a_token_that_is_added_on_one_side_only_but_means_the_same(
    make_folder: Make, byte_tokenizer: Letters
) -> None:
    marked = byte_tokenizer()
    marked.add_special_tokens([AddedToken(marked.id_to_token(3), special=True)])
    target = make_folder("target", hidden=16)
    assert report(target, make_folder("draft", tokenizer=marked)).verdict == "fits"


def test_a_model_beside_itself_gains_nothing(make_folder: Make) -> None:
    folder = make_folder()
    for other in (folder, folder.parent / "." / folder.name):
        found = report(folder, other)
        assert found.verdict == "fits"
        assert "the same model: no speed-up is possible" in found.warnings[0]


def test_a_draft_larger_than_its_target_gains_nothing(make_folder: Make) -> None:
    small, large = make_folder("small"), make_folder("large", hidden=16)
    found = report(small, large)
    assert found.verdict == "fits"
    assert "no speed-up is possible" in found.warnings[0]
    assert "1,040" in found.warnings[0]


def test_a_draft_without_tokenizer_needs_the_same_size(make_folder: Make) -> None:
    target = make_folder("target", hidden=16)
    same, other = make_folder("same"), make_folder("other", vocabulary=60)
    for folder in (same, other):
        (folder / "tokenizer.json").unlink()
    found = report(target, same)
    assert found.verdict == "fits"
    assert "is assumed" in found.warnings[0]
    assert "vocabulary of 60 is not the target's 64" in report(target, other).reason
    assert "Tokenizer files are missing" in report(same, target).reason


def test_a_tokenizer_that_cannot_be_read_is_a_problem(make_folder: Make) -> None:
    target, draft = make_folder("target"), make_folder("draft")
    (draft / "tokenizer.json").write_text('{"model": 3}', encoding="utf-8")
    found = report(target, draft)
    assert "does not read as expected" in found.reason
    assert found.verdict == "cannot"
    assert found.reason.startswith("the draft cannot be loaded: ")
    assert found.remedy


def test_sentencepiece_files_are_compared_byte_by_byte(make_folder: Make) -> None:
    target, draft = make_folder("target", hidden=16), make_folder("draft")
    for folder in (target, draft):
        (folder / "tokenizer.json").unlink()
        (folder / "tokenizer.model").write_bytes(b"one")
    assert report(target, draft).verdict == "fits"
    (draft / "tokenizer.model").write_bytes(b"two")
    assert report(target, draft).verdict == "cannot"


def write_config(folder: Path, **content: object) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps(content), encoding="utf-8")


def piece_tokenizer(pieces: list[str]) -> Tokenizer:
    """A SentencePiece tokenizer: spaces written as \u2581, and bytes to fall back to."""
    vocabulary = {piece: id_ for id_, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens([AddedToken("</s>", special=True)])
    return tokenizer


def test_the_report_tells_the_sizes_of_both_and_ignores_padding(make_folder: Make) -> None:
    target, draft = make_folder("target", vocabulary=80, hidden=16), make_folder("draft")
    found = report(target, draft)
    assert found.sentence == "fits: all 58 ids mean the same to both."
    assert (found.target.rows, found.target.tokens, found.target.parameters) == (80, 58, 1296)
    assert (found.draft.rows, found.draft.tokens, found.draft.context_length) == (64, 58, 128)
    assert (found.differing, found.added_differing, found.overlap) == (0, 0, None)
    assert found.remedy == ""


def test_vocabularies_of_different_kinds_are_compared_by_their_text(make_folder: Make) -> None:
    # Byte-level: "\u0120a" is " a", and "\u010a" the line end. SentencePiece: "\u2581a" and <0x0A>.
    letters = Tokenizer(models.BPE({"a": 0, "b": 1, "\u0120a": 2, "\u010a": 3, "q": 4}, []))
    letters.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    letters.decoder = decoders.ByteLevel()
    letters.add_special_tokens([AddedToken("</s>", special=True)])
    pieces = piece_tokenizer(["<0x0A>", "\u2581a", "a", "\u00e9"])
    target = make_folder("target", hidden=16, tokenizer=letters)
    draft = make_folder("draft", tokenizer=pieces)
    mine, other = (
        Vocabulary(side / "tokenizer.json").spellings().keys() for side in (target, draft)
    )
    assert mine == {b"a", b"b", b" a", b"\n", b"q"}
    assert other == {b"\n", b" a", b"a", b"\xc3\xa9"}
    found = report(target, draft)
    assert found.verdict == "fits by intersection"
    assert found.overlap is not None
    assert (found.overlap.shared, found.overlap.of_target) == (3, 3 / 5)
    assert found.overlap.of_draft == 3 / 4
    assert "75% are the target's too, of the target's 60% the draft's" in found.reason
    assert found.fits
    assert not found.same_ids
    assert found.differs
    assert found.warnings[0] == (
        "The draft reads another vocabulary: 75.0% of its tokens are the target's too, and 60.0% "
        "of the target's are its. Methods for it: tli, or slem."
    )


def test_vocabularies_that_share_too_little_fit_by_text_alone(make_folder: Make) -> None:
    target = make_folder("target", hidden=16, tokenizer=piece_tokenizer(["a", "b", "c"]))
    draft = make_folder("draft", tokenizer=piece_tokenizer(["x", "a", "y"]))
    found = report(target, draft)
    assert found.verdict == "fits by text"
    assert found.sentence.startswith("fits by text: id 0 means 'a' to the target and 'x' to")
    assert "Methods for it: slem: too few tokens are shared for tli." in found.warnings[0]


def test_special_tokens_are_told_by_role_where_they_differ(make_folder: Make) -> None:
    target, draft = make_folder("target", hidden=16), make_folder("draft")
    write_config(target, bos_token="<s>", eos_token={"content": "</s>"}, pad_token="</s>")
    write_config(draft, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token=3)
    found = report(target, draft)
    assert found.special == (Special("pad", "</s>", 57, "<pad>", None),)
    assert found.verdict == "fits"


def test_an_added_token_that_differs_is_named_with_its_id(
    make_folder: Make, byte_tokenizer: Letters
) -> None:
    target = make_folder("target", hidden=16)
    draft = make_folder("draft", tokenizer=byte_tokenizer(added=("<s>", "<end>", "<more>")))
    found = report(target, draft)
    assert (found.differing, found.added_differing) == (0, 2)
    assert found.first_added == (Meaning(57, "</s>", "<end>"), Meaning(58, None, "<more>"))
    assert found.sentence == "fits: all ids mean the same to both but those of 2 added tokens."


def test_chat_templates_are_compared_wherever_they_are_written(make_folder: Make) -> None:
    target, draft = make_folder("target", hidden=16), make_folder("draft")
    assert report(target, draft).template == "neither has one"
    write_config(target, chat_template="{{ messages }}")
    assert report(target, draft).template == "only the target has one"
    assert report(draft, target).template == "only the draft has one"
    (draft / "chat_template.jinja").write_text("{{ messages }}", encoding="utf-8")
    assert report(target, draft).template == "same"
    write_config(target, chat_template=[{"name": "default", "template": "{{ messages }}"}])
    assert report(target, draft).template == "differs"


def test_a_draft_that_reads_less_than_the_target_is_told_of(make_folder: Make) -> None:
    target = make_folder("target", hidden=16, config={"max_position_embeddings": 4096})
    draft = make_folder("draft")
    (warning,) = report(target, draft).warnings
    assert warning.startswith("The draft reads up to 128 tokens, the target up to 4,096")
    assert report(draft, target).warnings[0].endswith("no speed-up is possible.")


def test_a_model_that_cannot_be_loaded_is_the_verdict(make_folder: Make, tmp_path: Path) -> None:
    target, empty = make_folder("target"), tmp_path / "empty"
    empty.mkdir()
    found = report(target, empty)
    assert found.sentence.startswith("cannot, because the draft cannot be loaded: ")
    assert found.draft.reason
    assert found.remedy == found.draft.remedy != ""
    assert report(empty, target).sentence.startswith("cannot, because the target cannot be")
    assert "is missing" in found.reason


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_model_that_keeps_a_state_cannot_though_its_ids_are_the_same(
    make_folder: Make, role: str
) -> None:
    layers = {"layer_types": ["linear_attention", "full_attention"]}
    target = make_folder("target", hidden=16, config=layers if role == "target" else {})
    draft = make_folder("draft", config=layers if role == "draft" else {})
    found = report(target, draft)
    assert found.sentence == (
        f"cannot, because the {role} keeps a state (linear_attention), from which a rejected guess "
        "cannot be taken back."
    )
    assert "plain decoding works with it" in found.remedy
    assert found.writes_plainly
    assert not found.fits


def test_merges_may_be_written_in_either_way(make_folder: Make) -> None:
    vocabulary = {"a": 0, "b": 1, "ab": 2}
    target = make_folder("target", hidden=16, tokenizer=Tokenizer(models.BPE(vocabulary, [])))
    draft = make_folder("draft", tokenizer=Tokenizer(models.BPE(vocabulary, [])))
    for folder, merges in ((target, ["a b"]), (draft, [["a", "b"]])):
        content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        content["model"]["merges"] = merges
        (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    assert report(target, draft).cut_differently == ()


def test_tokens_of_a_unigram_model_are_numbered_as_they_stand(make_folder: Make) -> None:
    tokenizer = Tokenizer(models.Unigram([("<unk>", 0.0), ("\u2581a", -1.0), ("b", -2.5)], 0))
    folder = make_folder(tokenizer=tokenizer)
    assert Vocabulary(folder / "tokenizer.json").tokens == {0: "<unk>", 1: "\u2581a", 2: "b"}


@given(byte=st.integers(0, 255))
def test_the_letters_of_byte_level_tokens_are_those_of_the_tokenizer_library(byte: int) -> None:
    from app.library.vocabulary import _LETTERS

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    assert sorted(map(chr, _LETTERS)) == letters
    letter = next(chr(code) for code, stands_for in _LETTERS.items() if stands_for == byte)
    decoded = decoders.ByteLevel().decode([letter])
    assert decoded == bytes([byte]).decode("utf-8", "replace")
