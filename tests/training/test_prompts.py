"""The stream of prompts is varied, the same for the same seed, and free of what is benched."""

import random
import re
from itertools import islice

import pytest

from app import files
from app.library.prompts import shipped_prompts
from app.run.settings import Message
from app.training.page import Page, read_lists, shipped_lists
from app.training.passages import code_in, excerpt
from app.training.prompts import KINDS, Answered, Asked, generated, given

MANY = 20_000


@pytest.fixture(scope="module")
def stream():
    return list(islice(generated(0), MANY))


def test_a_seed_gives_its_own_stream_every_time(stream):
    assert list(islice(generated(0), 300)) == stream[:300]
    assert list(islice(generated(1), 300)) != stream[:300]


def test_hardly_a_prompt_comes_twice(stream):
    whole = {(asked.prompt, asked.earlier) for asked in stream}
    assert len(whole) >= 0.95 * MANY


def test_words_and_lengths_are_varied(stream):
    words = {word for asked in stream for word in re.findall(r"[^\W\d_]+", asked.prompt.lower())}
    assert len(words) > 6_000
    lengths = sorted(len(asked.prompt.split()) for asked in stream)
    assert 15 <= lengths[MANY // 2] <= 60
    assert lengths[MANY * 99 // 100] >= 150
    assert lengths[-1] <= 300


def test_every_kind_comes_about_as_often_as_it_should(stream):
    total = sum(kind.weight for kind in KINDS.values())
    assert len(KINDS) >= 25
    for name, kind in KINDS.items():
        expected = MANY * kind.weight / total
        assert sum(asked.kind == name for asked in stream) == pytest.approx(expected, rel=0.25)


def test_no_gap_is_left_open(stream):
    for asked in stream:
        texts = [asked.prompt, asked.system, *(message.text for message in asked.earlier)]
        assert not any(mark in text for text in texts for mark in ("«", "»", " a(n)", "A(n)"))
        assert asked.prompt.strip()


def test_turns_before_the_prompt_are_user_and_assistant_in_turn(stream):
    with_turns = [asked for asked in stream if asked.earlier]
    assert with_turns
    for asked in with_turns:
        assert [message.role for message in asked.earlier] == ["user", "assistant"]


def test_what_is_benched_is_not_taught(stream):
    benched = {
        " ".join(turn.lower().split()) for one in shipped_prompts().prompts for turn in one.turns
    }
    pieces = {text[i : i + 80] for text in benched for i in range(0, len(text) - 79, 20)}
    for asked in stream:
        prompt = " ".join(asked.prompt.lower().split())
        assert prompt not in benched
        assert not any(prompt[i : i + 80] in pieces for i in range(max(0, len(prompt) - 79)))


def test_what_the_target_wrote_is_worked_on():
    text = "The zeppelin of Quillmouth lands at dusk.\n\n```python\nzq = 1\nprint(zq)\n```"
    answered = Answered(Asked("story", "Tell me of Quillmouth."), text)
    worked = list(islice(generated(3, lambda rng: answered), 3_000))
    kinds = {asked.kind for asked in worked if "Quillmouth" in asked.prompt}
    assert {"summarise", "edit", "reformat", "extract", "translate-passage"} <= kinds
    assert any("zq = 1" in asked.prompt for asked in worked if asked.kind == "code-explain")
    follow_ups = [asked for asked in worked if asked.kind == "follow-up"]
    assert follow_ups
    expected = (Message("user", "Tell me of Quillmouth."), Message("assistant", text))
    assert all(asked.earlier == expected for asked in follow_ups)


def test_own_prompts_come_once_a_pass_in_a_new_order():
    own = [f"prompt {i}" for i in range(30)]
    drawn = [asked.prompt for asked in islice(given(own, 5), 90)]
    passes = [drawn[i : i + 30] for i in (0, 30, 60)]
    assert all(sorted(one) == sorted(own) for one in passes)
    assert passes[0] != passes[1] != passes[2]
    assert drawn == [asked.prompt for asked in islice(given(own, 5), 90)]
    assert list(given([], 5)) == []


@pytest.mark.parametrize("file", sorted(files.resource("training").glob("*.yaml")))
def test_a_file_holds_named_lists(file):
    lists = read_lists(file)
    assert lists
    for name, entries in lists.items():
        assert entries, name
        assert any(entries), name


def test_every_entry_can_be_filled():
    lists = shipped_lists()
    for name, entries in lists.items():
        for entry in entries:
            page = Page(random.Random(0), lists)
            page.bind("text", "")
            assert "«" not in page.fill(entry), name


def test_a_gap_is_filled_as_its_form_says():
    lists = {"fruit": ("apple", "pear"), "dish": ("«fruit» pie",)}
    page = Page(random.Random(0), lists)
    assert page.fill("«fruit#1» «fruit#2» «fruit#1»") in ("apple pear apple", "pear apple pear")
    assert page.fill("«^dish»") in ("Apple pie", "Pear pie")
    assert int(page.fill("«10-30:10»")) in (10, 20, 30)
    assert page.fill("«yes|no»") in ("yes", "no")
    assert page.fill("A(n) owl, a(n) unit, a(n) pear") == "An owl, a unit, a pear"
    page.bind("text", "«left» as it is")
    assert page.fill("<«text»>") == "<«left» as it is>"


def test_an_excerpt_is_made_of_whole_sentences_within_its_length():
    text = " ".join(f"This is sentence number {i}." for i in range(100))
    for seed in range(20):
        cut = excerpt(text, random.Random(seed), most=50)
        assert cut in text
        assert cut.endswith(".")
        assert len(cut.split()) <= 50
    assert excerpt("Short text. ", random.Random(0)) == "Short text."
    assert excerpt("word " * 500, random.Random(0), most=9).split() == ["word"] * 9


def test_code_is_found_between_its_fences():
    assert code_in("Here:\n```c\nint a;\nint b;\n```\nDone.") == "```c\nint a;\nint b;\n```"
    assert code_in("```c\nint a;\n```") is None
    assert code_in("no code") is None
