"""Ids of two vocabularies that stand for the same text."""

from __future__ import annotations

from pathlib import Path

import pytest
import transformers
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers.generation.candidate_generator import AssistantToTargetTranslator

from app.library.vocabulary import Vocabulary
from app.library.vocabulary_map import vocabulary_map
from app.library.vocabulary_pair import overlap
from tongues import END, PIECE_END, letters, pieces, tokenizer_folder


def vocabulary(folder: Path, tokenizer) -> Vocabulary:
    return Vocabulary(tokenizer_folder(folder, tokenizer) / "tokenizer.json")


def of_pieces(folder: Path, tokens: list[str]) -> Vocabulary:
    inner = Tokenizer(models.BPE({token: id_ for id_, token in enumerate(tokens)}, []))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.add_special_tokens([AddedToken(PIECE_END, special=True)])
    return vocabulary(folder, transformers.PreTrainedTokenizerFast(tokenizer_object=inner))


def of_letters(folder: Path, tokens: list[str]) -> Vocabulary:
    inner = Tokenizer(models.BPE({token: id_ for id_, token in enumerate(tokens)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel()
    inner.add_special_tokens([AddedToken(END, special=True)])
    return vocabulary(folder, transformers.PreTrainedTokenizerFast(tokenizer_object=inner))


def pairs(found) -> dict[int, int]:
    return dict(zip(found.target_ids, found.draft_ids, strict=True))


def test_spaces_bytes_and_letters_meet_by_their_bytes(tmp_path):
    # "Ġa" is " a"; "é" is two bytes, of which Ã stands for the first; Ċ is the line end.
    target = of_letters(tmp_path / "t", ["Ġa", "b", "Ã", "Ã©", "Ċ", "ab", "Ġ"])
    draft = of_pieces(tmp_path / "d", ["b", "<0xC3>", "é", "<0x0A>", "▁a", "a", "▁", "<0x62>"])
    found = vocabulary_map(target, draft)
    assert pairs(found) == {0: 4, 1: 0, 2: 1, 3: 2, 4: 3, 6: 6}
    assert len(found) == overlap(target, draft).shared


def test_of_several_ids_with_one_text_the_first_that_is_no_fallback_is_taken(tmp_path):
    draft = of_pieces(tmp_path / "d", ["<0x62>", "b", "a"])
    target = of_letters(tmp_path / "t", ["a", "b"])
    assert pairs(vocabulary_map(target, draft)) == {0: 2, 1: 1}
    assert pairs(vocabulary_map(draft, target)) == {1: 1, 2: 0}


def test_no_special_token_is_shared_but_the_ends_if_they_are_meant(tmp_path):
    target, draft = of_letters(tmp_path / "t", ["a"]), of_pieces(tmp_path / "d", ["x", "a"])
    assert pairs(vocabulary_map(target, draft)) == {0: 1}
    ends = {"target_end": target.id_of(END), "draft_end": draft.id_of(PIECE_END)}
    assert pairs(vocabulary_map(target, draft, **ends)) == {0: 1, 1: 2}
    # The same special token on both sides is no text either.
    twin = of_letters(tmp_path / "t2", ["a"])
    assert pairs(vocabulary_map(target, twin)) == {0: 0}


def test_an_end_that_is_an_ordinary_token_as_well_is_in_one_pair_alone(tmp_path):
    target, draft = of_letters(tmp_path / "t", ["a", "b"]), of_letters(tmp_path / "d", ["a", "b"])
    assert pairs(vocabulary_map(target, draft, target_end=0, draft_end=1)) == {0: 1}


def test_ids_that_a_model_has_no_row_for_are_left_out(tmp_path):
    target, draft = (of_letters(tmp_path / one, ["a", "b", "c"]) for one in "td")
    assert pairs(vocabulary_map(target, draft, target_rows=2)) == {0: 0, 1: 1}
    assert pairs(vocabulary_map(target, draft, draft_rows=1)) == {0: 0}


@pytest.mark.parametrize("turned", [False, True])
def test_every_pair_stands_for_one_text_and_is_found_both_ways(tmp_path, turned):
    sides = [letters(), pieces()][:: -1 if turned else 1]
    target, draft = (vocabulary(tmp_path / str(n), side) for n, side in enumerate(sides))
    found = vocabulary_map(target, draft)
    mine, other = target.texts(), draft.texts()
    assert all(mine[a] == other[b] for a, b in pairs(found).items())
    back = pairs(vocabulary_map(draft, target))
    assert {b: a for a, b in pairs(found).items()} == back
    # Decoded behind another letter, where no artificial space stands, both say the same.
    for a, b in pairs(found).items():
        said = [
            side.decode([*side.encode("x", add_special_tokens=False), id_]).partition("x")[2]
            for side, id_ in zip(sides, (a, b), strict=True)
        ]
        assert said[0] == said[1]


@pytest.mark.parametrize(
    ("target", "draft"), [(letters(), letters(300)), (letters(), pieces()), (pieces(), letters())]
)
def test_the_map_is_transformers_own_where_that_compares_text_as_well(tmp_path, target, draft):
    """It compares spellings after the space's sign was exchanged: not bytes, and not a letter that
    stands for another byte; and it takes special tokens for text.
    """
    other = AssistantToTargetTranslator(target, draft, len(target))
    theirs = {
        draft_id: target_id
        for draft_id, target_id in enumerate(other._assistant_to_target_input_ids.tolist())
        if target_id >= 0
    }
    mine, its = vocabulary(tmp_path / "t", target), vocabulary(tmp_path / "d", draft)
    ours = {b: a for a, b in pairs(vocabulary_map(mine, its)).items()}
    texts, others = mine.texts(), its.texts()
    plain = {
        draft_id: target_id
        for draft_id, target_id in theirs.items()
        if texts[target_id] == others[draft_id] and draft_id not in its.special
    }
    assert len(plain) > 40
    assert plain.items() <= ours.items()
    if target.eos_token == draft.eos_token:  # both byte-level: nothing is left to disagree on
        assert plain == ours
