"""Prompts from a person's file: its suffix tells how it is read, and every bad line is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from app.library.prompts_lines import Fault, Placed, from_json_lines, from_plain_text
from app.library.prompts_set import Prompt, PromptSet
from app.library.prompts_table import from_table
from app.run.problems import Problem

LARGEST = 50_000_000
"""Bytes of the largest file that is read as prompts."""

_NAMED = 5
"""Bad lines that a message names; it counts the others."""

_READERS: dict[str, Callable[[str, str], Iterable[Placed | Fault]]] = {
    ".jsonl": from_json_lines,
    ".ndjson": from_json_lines,
    ".txt": from_plain_text,
    ".md": from_plain_text,
}
_TABLES = (".csv", ".tsv")

SUFFIXES = (*_READERS, *_TABLES)
"""How the names of files with prompts end."""


def read_prompts(path: Path, *, column: str | None = None) -> PromptSet:
    """The prompts in a file. Raises Problem, which names the lines, unless all of it is sound.

    `.jsonl`, `.ndjson`: an object a line, with `turns` (Spec-Bench, MT-bench) or `prompt`
    (HumanEval), and `question_id` or `task_id`, and `category`. `.txt`, `.md`: one prompt, or
    several between lines that hold `---` alone. `.csv`, `.tsv`: a prompt a row, in the column that
    is chosen; else in the only one, or in the one called `prompt`. Text is UTF-8. Without an id of
    its own a prompt has the number of its line, without a category the file's name.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        message = f"{path} does not end like a file of prompts."
        raise Problem(message, f"End its name in one of: {', '.join(SUFFIXES)}.")
    if column is not None and suffix not in _TABLES:
        message = f"{path} has no columns, so {column!r} cannot be chosen."
        raise Problem(message, "Choose a column of a CSV file only.")
    text = _text(path)
    found: Iterable[Placed | Fault]
    if suffix in _TABLES:
        found = from_table(text, path, column=column)
    else:
        found = _READERS[suffix](text, path.stem)
    return _checked(path, _with_one_id(found))


def _checked(path: Path, found: Iterable[Placed | Fault]) -> PromptSet:
    """The set of what was found, if there is something and no line is bad."""
    prompts: list[Prompt] = []
    faults: list[str] = []
    others = 0
    for each in found:
        if isinstance(each, Placed):
            prompts.append(each.prompt)
        elif len(faults) < _NAMED:
            faults.append(f"line {each.line}: {each.message}")
        else:
            others += 1
    if faults:
        more = f" There are {others} more." if others else ""
        raise Problem(f"{path}, {'; '.join(faults)}.{more}", "Mend or remove what is named.")
    if not prompts:
        raise Problem(f"{path} holds no prompt.", "Choose a file with one prompt at least.")
    return PromptSet(path.stem, tuple(prompts))


def _with_one_id(found: Iterable[Placed | Fault]) -> Iterator[Placed | Fault]:
    """The same, with a fault in the place of a prompt whose id another one has."""
    lines: dict[str, int] = {}
    for each in found:
        if isinstance(each, Placed):
            first = lines.setdefault(each.prompt.id, each.line)
            if first != each.line:
                message = f"the id {each.prompt.id[:80]!r} stands in line {first} already"
                yield Fault(each.line, message)
                continue
        yield each


def _text(path: Path) -> str:
    """The text of a file, without its byte order mark. Raises Problem."""
    data = _bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Problem(f"{path}, line {line}, is not UTF-8.", "Save the file as UTF-8.") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise Problem(f"{path}, line {line}, is not text.", "Choose a text file, saved as UTF-8.")
    return text


def _bytes(path: Path) -> bytes:
    """What is in a file, if it is one and not too large."""
    try:
        if path.exists() and not path.is_file():
            raise Problem(f"{path} is no file.", "Choose a file with prompts.")
        with open(path, "rb") as page:
            data = page.read(LARGEST + 1)
    except OSError as error:
        remedy = "Check the path, and that you may read the file."
        raise Problem(f"{path} cannot be read: {error.strerror or error}.", remedy) from error
    except ValueError as error:
        raise Problem(f"{str(path)!r} is no path.", "Choose a file with prompts.") from error
    if len(data) > LARGEST:
        message = f"{path} is over {LARGEST // 10**6} MB, too large for prompts."
        raise Problem(message, "Split it, or choose another file.")
    return data
