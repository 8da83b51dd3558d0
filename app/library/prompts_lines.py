"""Prompts from JSON Lines and from plain text."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from app.library.prompts_set import Prompt

BETWEEN = "---"
"""A line that holds this alone stands between two prompts of a plain text."""


class Placed(msgspec.Struct, frozen=True):
    """A prompt and the line in which it begins."""

    line: int
    prompt: Prompt


class Fault(msgspec.Struct, frozen=True):
    """A line that is no prompt, and why."""

    line: int
    message: str


def from_json_lines(text: str, name: str) -> Iterator[Placed | Fault]:
    """The prompts of Spec-Bench, MT-bench or HumanEval: an object a line, blank lines aside."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield _from_json(line, number, name=name)


def from_plain_text(text: str, name: str) -> Iterator[Placed | Fault]:
    """The parts of a text between lines of `---`; all of it as one prompt where there is none."""
    part: list[str] = []
    begin = 1
    lines = [line.rstrip("\r") for line in text.split("\n")]
    for number, line in enumerate([*lines, BETWEEN], 1):
        if line.rstrip() != BETWEEN:
            part.append(line)
            continue
        whole = "\n".join(part).strip("\n")
        if whole.strip():
            yield Placed(begin, Prompt(str(begin), name, (whole,)))
        part, begin = [], number + 1


class _Question(msgspec.Struct):
    """A line as the known collections write it; further fields are passed over."""

    question_id: int | str | None = None
    task_id: int | str | None = None
    category: str | None = None
    turns: tuple[str, ...] | None = None
    prompt: str | None = None


_decode = msgspec.json.Decoder(_Question).decode


def _from_json(line: str, number: int, *, name: str) -> Placed | Fault:
    try:
        question = _decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        return Fault(number, str(error))
    given = [question.question_id, question.task_id, number]
    id = str(next(each for each in given if each is not None))
    turns = question.turns
    if turns is None and question.prompt is not None:
        turns = (question.prompt,)
    if turns is None:
        return Fault(number, "there is neither `turns` nor `prompt`")
    if not turns or not all(turn.strip() for turn in turns):
        return Fault(number, "a turn is empty" if turns else "`turns` is empty")
    return Placed(number, Prompt(id, question.category or name, turns))
