"""Errors that a person can do something about."""

from __future__ import annotations

import traceback

EMPTY_PROMPT = "The prompt is empty."
"""What is wrong with a prompt of no tokens: no longer so once something is written."""


class Problem(Exception):
    """Something a person can mend: one sentence says what is wrong, another what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


def empty_prompt() -> Problem:
    """A prompt of no tokens."""
    return Problem(EMPTY_PROMPT, "Write something for the model to go on from.")


class ContextFull(Problem):
    """A prompt that leaves no room for a text within the context."""


class DoesNotFit(Problem):
    """A device's memory has no room for what is wanted."""


class Damaged(Problem):
    """Files of a model that hold something else than they should, in whatever precision."""


class Cancelled(Exception):
    """Raised between two forward passes when a person has asked to stop."""


def release_frames(error: BaseException | None) -> None:
    """Lets go of what an exception and those behind it hold in their frames: tensors, above all."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
