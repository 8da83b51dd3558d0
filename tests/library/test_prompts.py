"""Prompts that ship are sound; prompts that a person brings are read whole, or every fault is
named."""

import json
import os
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from app import files
from app.library import prompts_reading
from app.library.prompts import (
    KINDS,
    SUFFIXES,
    Prompt,
    PromptSet,
    limit_per_category,
    read_prompts,
    shipped_prompts,
)
from app.run.problems import Problem

shared = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(tmp_path, name, data, **chosen):
    file = tmp_path / name
    file.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    return read_prompts(file, **chosen)


def texts(prompts):
    return [prompt.turns for prompt in prompts.prompts]


def test_ten_of_each_kind_ship():
    shipped = shipped_prompts()
    assert shipped.categories == tuple(KINDS)
    assert len({prompt.id for prompt in shipped.prompts}) == len(shipped.prompts) == 60
    for kind in KINDS.values():
        assert sum(prompt.category == kind.name for prompt in shipped.prompts) == 10
        assert kind.title
        assert kind.summary.endswith(".")
    assert len({prompt.turns[0] for prompt in shipped.prompts}) == 60
    assert {len(prompt.turns) for prompt in shipped.prompts} == {1, 2}
    folder = files.resource("prompts")
    assert {file.stem for file in folder.iterdir()} == set(KINDS)


def test_passages_are_long_enough_to_summarise_and_edit():
    for prompt in shipped_prompts(["summarise", "edit"]).prompts:
        _, passage = prompt.turns[0].split("\n\n", 1)
        assert 80 <= len(passage.split()) <= 200


def test_kinds_can_be_chosen():
    assert shipped_prompts(["edit", "chat", "edit"]).categories == ("edit", "chat")
    assert shipped_prompts([]).prompts == ()
    with pytest.raises(Problem, match="summarise"):
        shipped_prompts(["poetry"])


def test_mt_bench_and_spec_bench_are_read(tmp_path):
    lines = [
        {"question_id": 81, "category": "writing", "turns": ["one\n", "two"], "reference": [1]},
        {"question_id": 82, "category": "qa", "turns": ["three \u2028 é"]},
    ]
    data = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    expected = PromptSet(
        "question",
        (Prompt("81", "writing", ("one\n", "two")), Prompt("82", "qa", ("three \u2028 é",))),
    )
    assert read(tmp_path, "question.jsonl", data) == expected
    assert read(tmp_path, "question.jsonl", "\ufeff" + data.replace("\n", "\r\n\r\n")) == expected


def test_human_eval_is_read(tmp_path):
    prompt = "from typing import List\n\n\ndef f(x):\n    "
    line = json.dumps({"task_id": "HumanEval/0", "prompt": prompt, "test": "", "entry_point": "f"})
    found = read(tmp_path, "HumanEval.jsonl", line + "\n")
    assert found.prompts == (Prompt("HumanEval/0", "HumanEval", (prompt,)),)


def test_a_line_without_an_id_is_named_by_its_number(tmp_path):
    found = read(tmp_path, "a.ndjson", '\n{"prompt": "x"}\n{"prompt": "y", "category": "c"}')
    assert found.prompts == (Prompt("2", "a", ("x",)), Prompt("3", "c", ("y",)))


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("{", "line 2"),
        ("[]", "array"),
        ("[" * 100_000, "line 2"),
        ('{"a":' * 100_000, "line 2"),
        ("NaN", "malformed"),
        ('{"question_id": NaN, "prompt": "x"}', "malformed"),
        ('{"question_id": 1.5, "prompt": "x"}', "question_id"),
        ('{"question_id": true, "prompt": "x"}', "question_id"),
        ('{"question_id": 1e999, "prompt": "x"}', "line 2"),
        ('{"question_id": 2}', "neither"),
        ('{"turns": []}', "`turns` is empty"),
        ('{"turns": [" "]}', "a turn is empty"),
        ('{"turns": "one"}', "array"),
        ('{"turns": [1]}', "turns"),
        ('{"turns": ["\\ud800"]}', "line 2"),
        ('{"prompt": 1}', "prompt"),
        ('{"prompt": ""}', "a turn is empty"),
        ('{"category": 3, "prompt": "x"}', "category"),
        ('{"question_id": "1", "prompt": "x"}', "the id '1' stands in line 1 already"),
    ],
)
def test_a_bad_line_is_named_with_its_reason(tmp_path, line, word):
    sound = '{"question_id": 1, "prompt": "x"}'
    with pytest.raises(Problem) as caught:
        read(tmp_path, "a.jsonl", f"{sound}\n{line}\n")
    assert "line 2" in caught.value.message
    assert word in caught.value.message
    assert caught.value.remedy


def test_many_bad_lines_are_counted(tmp_path):
    with pytest.raises(Problem, match=r"line 1: .*line 5: .*There are 95 more"):
        read(tmp_path, "a.jsonl", "{}\n" * 100)


def test_plain_text_is_one_prompt_unless_lines_part_it(tmp_path):
    whole = "\n  First paragraph.\n\nSecond --- one.\n"
    assert texts(read(tmp_path, "a.txt", whole)) == [("  First paragraph.\n\nSecond --- one.",)]
    found = read(tmp_path, "b.md", "---\r\none\r\n\r\ntwo\r\n--- \r\n\r\n---\r\nthree")
    assert found.prompts == (Prompt("2", "b", ("one\n\ntwo",)), Prompt("8", "b", ("three",)))


def test_a_column_of_a_table_is_read(tmp_path):
    data = 'id,category,text,more\r\n7,c,"a, ""b""\r\nc",x\r\n\r\n8,,d\r\n'
    found = read(tmp_path, "t.csv", data, column="text")
    assert found.prompts == (
        Prompt("7", "c", ('a, "b"\r\nc',)),
        Prompt("8", "t", ("d",)),
    )
    assert texts(read(tmp_path, "t.csv", "\ufeffprompt;n\nx\u2028y;1\n")) == [("x\u2028y",)]
    assert texts(read(tmp_path, "t.tsv", "n\tprompt\n1\tx, y\n")) == [("x, y",)]
    only = read(tmp_path, "t.csv", "question\nWhat?\nWhy?\n")
    assert only.prompts == (Prompt("2", "t", ("What?",)), Prompt("3", "t", ("Why?",)))


@pytest.mark.parametrize(
    ("data", "column", "word"),
    [
        ("a,b\n1,2\n", None, "'a', 'b'"),
        ("a,b\n1,2\n", "c", "no column 'c'; it has 'a', 'b'"),
        ("a,a\n1,2\n", "a", "2 columns called 'a'"),
        ("prompt,n\nx, and y,1\n", None, "line 2: it has 3 cells"),
        ("n,prompt\n1\n", None, "line 2: the prompt is empty"),
        ('prompt\n"open\n', None, "line 2: unexpected end"),
        ("id,prompt\n1,x\n1,y\n", None, "line 3: the id '1' stands in line 2 already"),
        ("", None, "no columns"),
        ("\n\n", None, "no columns"),
        ("prompt\n", None, "holds no prompt"),
        (f"prompt\n{'x' * 200_000}\n", None, "field limit"),
    ],
)
def test_a_table_that_leaves_a_question_is_refused(tmp_path, data, column, word):
    with pytest.raises(Problem) as caught:
        read(tmp_path, "t.csv", data, column=column)
    assert word in caught.value.message


@pytest.mark.parametrize(
    ("name", "data", "word"),
    [
        ("a.jsonl", b"", "holds no prompt"),
        ("a.txt", b" \n---\n\n", "holds no prompt"),
        ("a.txt", b"one\n\xff", "line 2, is not UTF-8"),
        ("a.txt", "one".encode("utf-16"), "line 1, is not UTF-8"),
        ("a.txt", b"one\n\ntwo\0", "line 3, is not text"),
        ("a.pdf", b"%PDF", "does not end like"),
        ("a", b"x", "does not end like"),
    ],
)
def test_a_file_that_holds_no_prompts_is_refused(tmp_path, name, data, word):
    with pytest.raises(Problem) as caught:
        read(tmp_path, name, data)
    assert word in caught.value.message


def test_a_huge_file_a_folder_and_a_missing_file_are_refused(tmp_path, monkeypatch):
    (tmp_path / "folder.txt").mkdir()
    with pytest.raises(Problem, match="is no file"):
        read_prompts(tmp_path / "folder.txt")
    for name in ("missing.txt", "x" * 300 + ".txt"):
        with pytest.raises(Problem, match="cannot be read"):
            read_prompts(tmp_path / name)
    with pytest.raises(Problem):
        read_prompts(tmp_path / "a\0.txt")
    monkeypatch.setattr(prompts_reading, "LARGEST", 10)
    with pytest.raises(Problem, match="too large"):
        read(tmp_path, "a.txt", "x" * 11)
    assert texts(read(tmp_path, "a.txt", "x" * 10)) == [("x" * 10,)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
def test_a_pipe_is_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(Problem, match="is no file"):
        read_prompts(tmp_path / "pipe.txt")


def test_a_column_of_something_without_columns_is_refused(tmp_path):
    with pytest.raises(Problem, match="has no columns"):
        read(tmp_path, "a.txt", "x", column="prompt")


@shared
@given(name=some.sampled_from(SUFFIXES), data=some.binary(max_size=300))
def test_no_bytes_end_in_anything_but_prompts_or_a_problem(tmp_path, name, data):
    try:
        found = read(tmp_path, f"a{name}", data)
    except Problem:
        return
    assert found.prompts
    assert len({prompt.id for prompt in found.prompts}) == len(found.prompts)


@shared
@given(
    some.sampled_from((".csv", ".tsv", ".txt", ".jsonl")),
    some.text(alphabet=string.ascii_letters[:4] + '",;\t\r\n-{}[]:\u2028\x0b é', max_size=60),
)
def test_no_text_ends_in_anything_but_prompts_or_a_problem(tmp_path, name, data):
    try:
        found = read(tmp_path, f"a{name}", data)
    except Problem:
        return
    assert all(turn.strip() for prompt in found.prompts for turn in prompt.turns)


@shared
@given(
    some.lists(
        some.lists(some.text(min_size=1).filter(str.strip), min_size=1, max_size=3).map(tuple),
        min_size=1,
        max_size=5,
    )
)
def test_turns_come_back_as_they_were_written(tmp_path, turns):
    data = "\n".join(json.dumps({"turns": each}) for each in turns)
    assert texts(read(tmp_path, "a.jsonl", data)) == turns


def test_the_first_of_each_category_are_kept_in_their_order():
    given_ = PromptSet("s", tuple(Prompt(str(n), "ab"[n % 3 == 0], ("x",)) for n in range(9)))
    assert [prompt.id for prompt in limit_per_category(given_, 2).prompts] == ["0", "1", "2", "3"]
    assert limit_per_category(given_, 100) == given_
    for wrong in (0, -1):
        with pytest.raises(Problem, match="limit"):
            limit_per_category(given_, wrong)
