"""The target's text in the draft's ids, and the draft's text in the target's."""

from __future__ import annotations

import json
import random

import pytest

from app.models.retold import Retold
from app.run.problems import Problem
from tongues import (
    BEGIN,
    END,
    PIECE_END,
    SAID,
    bridge,
    letter_tokenizer,
    letters,
    pieces,
    spelling,
    tokenizer_folder,
    write_model,
)

KINDS = {"letters": letters(), "few letters": letters(280), "pieces": pieces()}
KINDS["legacy pieces"] = pieces(legacy=True)
TEXTS = [SAID, " the cat", "x", "  two  spaces ", "🙂日本語é", "\n\n", "caté\U0001f642"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    home = tmp_path_factory.mktemp("kinds")
    return {name: write_model(home / name, kind) for name, kind in KINDS.items()}


def ids_of(name: str, text: str) -> list[int]:
    return KINDS[name].encode(text, add_special_tokens=False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_cut_behind_another_as_the_whole_is(tmp_path, kind):
    found = spelling(tokenizer_folder(tmp_path, KINDS[kind]))
    whole = ids_of(kind, SAID)
    spelled = found.spelled(whole)
    assert spelled.removeprefix(b" ") == SAID.encode()
    for place in range(1, len(whole)):
        before, behind = found.spelled(whole[:place]), found.spelled(whole[place:])
        cut = found.cut(behind, before=before)
        assert found.spelled(cut) == behind
        # Without a whole character on both sides, bytes stand for what is broken.
        if behind.decode(errors="replace").isascii() and before.decode(errors="replace").isascii():
            assert cut == whole[place:]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("before", ["", "the c", "\n", "é"])
def test_any_bytes_are_spelled_whatever_stands_before_them(tmp_path, kind, before):
    found = spelling(tokenizer_folder(tmp_path, KINDS[kind]))
    odd = [b"\x80\xc3", b"at\xf0\x9f", b"\x82at", b"\xff the\xfe", "é".encode()[1:] + b" the"]
    for text in [*odd, *(one.encode() for one in TEXTS)]:
        assert found.spelled(found.cut(text, before=before.encode())) == text


def test_a_byte_that_a_tokenizer_has_no_id_for_is_not_cut(tmp_path):
    found = spelling(tokenizer_folder(tmp_path, letter_tokenizer("abc")))
    assert found.cut(b"abca") == [0, 1, 2, 0]
    assert found.cut(b"\xc3") is None
    assert found.cut(b"abx") is None


@pytest.mark.parametrize("draft", KINDS)
@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_what_the_draft_reads_says_what_the_target_wrote(folders, target, draft, text):
    between = bridge(folders[target], folders[draft])
    ids, retold = ids_of(target, text), Retold(between)
    opening = KINDS[draft].encode("", add_special_tokens=True)
    for end in range(1, len(ids) + 1):
        read = retold.follow(ids[:end])
        said = between._target.spelling.spelled(ids[:end])
        said = said.removeprefix(b" ") if "pieces" in target else said
        assert read[: len(opening)] == opening
        spelled = between.spelling.spelled(read[len(opening) :])
        assert (spelled.removeprefix(b" ") if "pieces" in draft else spelled) == said
    if target == draft:
        assert read == [*opening, *ids]


@pytest.mark.parametrize(("target", "draft"), [("letters", "pieces"), ("pieces", "letters")])
def test_a_text_that_grows_is_read_as_if_it_were_read_at_once(folders, target, draft):
    between = bridge(folders[target], folders[draft])
    ids = ids_of(target, SAID * 3)
    whole = KINDS[draft].encode(SAID * 3, add_special_tokens=True)
    steps = random.Random(3)
    for _ in range(5):
        retold, end, kept = Retold(between), 0, []
        while end < len(ids):
            end = min(end + steps.randint(1, 5), len(ids))
            read = retold.follow(ids[:end])
            again = sum(1 for a, b in zip(read, kept, strict=False) if a == b)
            assert len(kept) - again <= 8  # so many may be forgotten and read anew
            kept = read
        assert read == whole


def test_ids_that_were_handed_out_stay_as_they_were(folders):
    retold = Retold(bridge(folders["letters"], folders["pieces"]))
    ids = ids_of("letters", "the cat sat")
    first = retold.follow(ids[:1])
    copy = list(first)
    retold.follow(ids)
    assert first == copy


def test_ends_and_beginnings_are_told_in_the_drafts_own_way(folders):
    between = bridge(folders["letters"], folders["pieces"])
    end, begin = (KINDS["letters"].convert_tokens_to_ids(one) for one in (END, BEGIN))
    ids = [*ids_of("letters", "the"), end, *ids_of("letters", " cat")]
    own = KINDS["pieces"]
    assert own.convert_tokens_to_ids(PIECE_END) in Retold(between).follow(ids)
    # A token that is no text to the draft is read as it is written.
    assert own.decode(Retold(between).follow([begin])).endswith(BEGIN)


def test_what_the_draft_writes_is_cut_as_the_target_would_cut_it(folders):
    between = bridge(folders["letters"], folders["pieces"])
    for cut in range(1, len(ids_of("pieces", "the cat and the rat"))):
        own = ids_of("pieces", "the cat and the rat")
        before = KINDS["pieces"].decode(own[:cut])
        text = ids_of("letters", before)
        written = between.retokenised(text, own[cut:])
        assert KINDS["letters"].decode([*text, *written]) == "the cat and the rat"
    whole = ids_of("letters", "the cat and the rat")
    text, own = whole[:2], ids_of("pieces", "the cat and the rat")
    assert between.retokenised(text, own[2:]) == whole[2:]


def test_an_end_that_the_draft_writes_ends_the_guesses(folders):
    between = bridge(folders["letters"], folders["pieces"])
    end = KINDS["pieces"].convert_tokens_to_ids(PIECE_END)
    at = ids_of("pieces", "the cat")
    guesses = between.retokenised(ids_of("letters", "the"), [at[1], end, at[0], at[0]])
    assert guesses == [*ids_of("letters", " cat"), KINDS["letters"].eos_token_id]
    begin = KINDS["pieces"].bos_token_id
    assert between.retokenised(ids_of("letters", "the"), [begin, at[1]]) == []


def test_a_draft_whose_tokenizer_changes_what_it_reads_is_read_anew_each_time(tmp_path, folders):
    from tokenizers import normalizers
    from transformers import PreTrainedTokenizerFast

    changed = PreTrainedTokenizerFast.from_pretrained(folders["letters"])
    changed.backend_tokenizer.normalizer = normalizers.Lowercase()
    between = bridge(folders["letters"], write_model(tmp_path / "low", changed))
    ids, retold = ids_of("letters", "The CAT sat"), Retold(between)
    for end in range(1, len(ids) + 1):
        whole = KINDS["letters"].decode(ids[:end]).lower()
        assert retold.follow(ids[:end]) == ids_of("letters", whole)
    # A character that is not whole yet cannot be read so.
    assert retold.follow([*ids, ids_of("letters", "Ü")[0]]) == []


def test_a_pair_without_a_shared_token_is_told_the_other_method(tmp_path):
    sides = [write_model(tmp_path / one, letter_tokenizer(one)) for one in ("ab", "cd")]
    for side in sides:  # nor do both have a token that ends a text
        for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
            said = json.loads((side / name).read_text("utf-8"))
            kept = {key: value for key, value in said.items() if "eos" not in key}
            (side / name).write_text(json.dumps(kept), "utf-8")
    with pytest.raises(Problem, match="no token in common") as told:
        _ = bridge(*sides).shared
    assert "slem" in told.value.remedy
