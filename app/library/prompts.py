"""The prompts that ship with the program, by kind; and the door to those that a person brings."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from app import files
from app.library.prompts_reading import SUFFIXES, read_prompts
from app.library.prompts_set import Prompt, PromptSet, limit_per_category
from app.run.problems import Problem

__all__ = [
    "KINDS",
    "SUFFIXES",
    "Kind",
    "Prompt",
    "PromptSet",
    "limit_per_category",
    "read_prompts",
    "shipped_prompts",
]


class Kind(msgspec.Struct, frozen=True):
    """A kind of prompt that ships with the program."""

    name: str
    """The category of its prompts, and the name of its file."""
    title: str
    summary: str


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("chat", "Chat", "Everyday questions and small pieces of writing."),
        Kind("code", "Code", "Functions to write, mend, explain and translate."),
        Kind("summarise", "Summarise", "A passage, to be told in fewer words."),
        Kind("edit", "Edit and repeat", "A passage, to be repeated with a small change."),
        Kind("reasoning", "Reasoning", "Sums and puzzles, to be worked out step by step."),
        Kind("translation", "Translation", "Sentences from one language into another."),
    )
}
"""The kinds that ship, in the order in which they are shown."""


def shipped_prompts(kinds: Iterable[str] | None = None) -> PromptSet:
    """The prompts that ship, of these kinds or of all. Raises Problem for an unknown kind."""
    names = list(KINDS) if kinds is None else list(dict.fromkeys(kinds))
    for name in names:
        if name not in KINDS:
            message = f"No prompts of the kind {name!r} ship with Foretoken."
            raise Problem(message, f"Choose from: {', '.join(KINDS)}.")
    sets = [read_prompts(files.resource(f"prompts/{name}.jsonl")) for name in names]
    return PromptSet("shipped", tuple(prompt for one in sets for prompt in one.prompts))
