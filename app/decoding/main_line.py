"""What a tree of guesses is told as: one guess a level, the kept ones first.

Figures count levels: a level is accepted where a guess of it was kept, and rejected where all that
could have stood there were. So a tree reads as a chain does, with the guesses beside each counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MainLine:
    """One guess for each level, and the row of the target's that decides it."""

    guesses: tuple[int, ...]
    """Places among the guesses."""
    rows: tuple[int, ...]
    """The target's row at each level, and the one behind the last kept guess in its turn."""
    tried: tuple[int, ...]
    """At each level that was decided, how many guesses were."""
    rejected: bool
    """Whether the last kept guess has children, all of which were rejected."""


def main_line(parents: Sequence[int], kept: Sequence[float], tested: Sequence[float]) -> MainLine:
    """The kept guesses, then the first child that was rejected, then the first of each level."""
    path = [place for place, is_kept in enumerate(kept) if is_kept]
    above = [-1, *path]
    decided = [parent for place, parent in enumerate(parents) if tested[place]]
    children = [place for place, parent in enumerate(parents) if parent == above[-1]]
    line = [*path, *children[:1]]
    depths = _depths(parents)
    line += [depths.index(level) for level in range(len(line) + 1, max(depths) + 1)]
    return MainLine(
        guesses=tuple(line),
        rows=tuple(place + 1 for place in above),
        tried=tuple(decided.count(at) for at in above),
        rejected=bool(children),
    )


def _depths(parents: Sequence[int]) -> list[int]:
    """How deep each guess lies, from 1."""
    depths: list[int] = []
    for parent in parents:
        depths.append(1 if parent < 0 else depths[parent] + 1)
    return depths
