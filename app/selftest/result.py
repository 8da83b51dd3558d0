"""How a check went, and how whatever stops one is told in a line."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import msgspec

from app.run.problems import Problem


class Result(msgspec.Struct, frozen=True):
    """How one check went."""

    name: str
    detail: str
    """What was found, or why it failed."""
    failed: bool = False

    @property
    def line(self) -> str:
        """The one line that the check gives."""
        return f"{self.name}: {'FAILED' if self.failed else 'ok'}: {self.detail}"


def tried(name: str, look: Callable[[], str]) -> Result:
    """The result of a check: `look` says what it found, or raises whatever stops it."""
    try:
        return Result(name, look())
    except Exception as fault:
        return failure(name, fault)


def failure(name: str, fault: Exception) -> Result:
    """A failed check, with what stopped it in one line."""
    if isinstance(fault, Problem):
        told = f"{fault.message} {fault.remedy}".strip()
    else:
        frames = traceback.extract_tb(fault.__traceback__)
        place = f" at {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
        told = f"{type(fault).__name__}: {fault}{place}"
    return Result(name, " ".join(told.split()), failed=True)
