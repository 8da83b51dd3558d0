"""Prompts as ids: the chat template, prompts of nothing, and tokenizer files that are not whole."""

import json

import pytest
from tokenizers import Tokenizer as Inner
from tokenizers import models, pre_tokenizers

from app.models.tokenizer import Tokenizer
from app.run.problems import Problem
from app.run.settings import Message


def folder(path, *, begins=True, template=""):
    """A folder with a byte tokenizer: 256 bytes, and a token that begins a text or none."""
    from transformers import PreTrainedTokenizerFast

    letters = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    inner = Inner(models.BPE(vocab=letters, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.add_special_tokens(["<s>"])
    whole = PreTrainedTokenizerFast(
        tokenizer_object=inner, **{"bos_token": "<s>"} if begins else {}
    )
    if template:
        whole.chat_template = template
    whole.save_pretrained(path)
    return path


def test_a_raw_prompt_of_nothing_is_the_token_that_begins_a_text(tmp_path):
    # A30: only if there is one, and only if it was asked for raw.
    tokenizer = Tokenizer(folder(tmp_path))
    assert tokenizer.encode_prompt("", raw=True) == [256]
    assert len(tokenizer.encode_prompt(" ", raw=True)) == 1
    for prompt in ("", "  \n"):
        with pytest.raises(Problem, match="empty"):
            tokenizer.encode_prompt(prompt)


def test_a_prompt_of_nothing_is_refused_where_no_token_begins_a_text(tmp_path):
    with pytest.raises(Problem, match="empty"):
        Tokenizer(folder(tmp_path, begins=False)).encode_prompt("", raw=True)


def test_a_template_that_writes_nothing_is_refused(tmp_path):
    tokenizer = Tokenizer(folder(tmp_path, template="{# nothing #}"))
    with pytest.raises(Problem, match="empty"):
        tokenizer.encode_prompt("hello")
    assert len(tokenizer.encode_prompt("hello", raw=True)) == 5


def test_a_template_that_refuses_is_a_problem_in_its_own_words(tmp_path):
    tokenizer = Tokenizer(folder(tmp_path, template="{{ raise_exception('no system') }}"))
    with pytest.raises(Problem, match="no system"):
        tokenizer.encode_prompt("hello", system="x")


@pytest.mark.parametrize("text", ["{}", '{"model": 1}', "[]"])
def test_a_tokenizer_file_that_is_not_whole_is_a_problem(tmp_path, text):
    (folder(tmp_path) / "tokenizer.json").write_text(text, encoding="utf-8")
    with pytest.raises(Problem, match="tokenizer"):
        Tokenizer(tmp_path)


SAID = (Message("user", "a"), Message("assistant", "b"))


def test_a_template_is_given_what_was_said_before(tmp_path):
    template = "{% for one in messages %}{{ one.role[0] }}:{{ one.content }};{% endfor %}"
    tokenizer = Tokenizer(folder(tmp_path, template=template))
    ids = tokenizer.encode_prompt("c", system="z", earlier=SAID)
    assert ids == tokenizer.encode_prompt("s:z;u:a;a:b;u:c;", raw=True)


@pytest.mark.parametrize("raw", [False, True])
def test_without_a_template_blank_lines_part_what_was_said(tmp_path, raw):
    tokenizer = Tokenizer(folder(tmp_path, begins=False, template="{{ 1 }}" if raw else ""))
    ids = tokenizer.encode_prompt("c", system="z", earlier=SAID, raw=raw)
    assert ids == tokenizer.encode_prompt("z\n\na\n\nb\n\nc", raw=True)


def test_a_text_that_a_tokenizer_cannot_read_is_a_problem(tmp_path):
    # Its file is in order, but for a token for the unknown that it does not have.
    file = folder(tmp_path) / "tokenizer.json"
    said = json.loads(file.read_text(encoding="utf-8"))
    said["model"]["unk_token"] = "<unknown>"
    del said["model"]["vocab"]["h"]
    file.write_text(json.dumps(said), encoding="utf-8")
    tokenizer = Tokenizer(tmp_path)
    with pytest.raises(Problem, match="cannot read this text: Unk token `<unknown>` not found"):
        tokenizer.encode_prompt("hello")
    assert len(tokenizer.encode_prompt("ello")) == 4
