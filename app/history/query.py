"""What a person looks for, as a condition of SQL."""

from __future__ import annotations

from collections.abc import Sequence

from app.history.folding import folded

_WORD = (
    "(instr(words, ?) OR instr(folded(note), ?)"
    " OR EXISTS (SELECT 1 FROM tags WHERE tags.run = runs.run AND instr(tags.folded, ?)))"
)
_TAG = "EXISTS (SELECT 1 FROM tags WHERE tags.run = runs.run AND tags.folded = ?)"


def matching(text: str, tags: Sequence[str]) -> tuple[str, list[object]]:
    """The condition that every word is somewhere in a run and that it has every tag, with values.

    Words are compared as they are: no character in them has a meaning of its own.
    """
    words = folded(text).split()
    names = [folded(tag.strip()) for tag in tags]
    conditions = [_WORD] * len(words) + [_TAG] * len(names)
    values: list[object] = [word for word in words for _ in range(3)]
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    return where, [*values, *names]
