"""A set of prompts, and how it is cut down."""

from __future__ import annotations

from collections import Counter

import msgspec

from app.run.problems import Problem


class Prompt(msgspec.Struct, frozen=True):
    """One prompt of a set: what a person says, turn by turn."""

    id: str
    category: str
    turns: tuple[str, ...]


class PromptSet(msgspec.Struct, frozen=True):
    """Prompts that are run together, in their order; no two have the same id."""

    name: str
    prompts: tuple[Prompt, ...]

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories, in the order in which they first appear."""
        return tuple(dict.fromkeys(prompt.category for prompt in self.prompts))


def limit_per_category(prompts: PromptSet, limit: int) -> PromptSet:
    """The first so many prompts of each category. Raises Problem for a limit below 1."""
    if limit < 1:
        message = f"The limit per category is {limit}; it has to be 1 or more."
        raise Problem(message, "Leave it out to run every prompt.")
    taken: Counter[str] = Counter()
    chosen = []
    for prompt in prompts.prompts:
        if taken[prompt.category] < limit:
            chosen.append(prompt)
        taken[prompt.category] += 1
    return PromptSet(prompts.name, tuple(chosen))
