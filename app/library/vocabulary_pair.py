"""How two vocabularies differ, and what they share."""

from __future__ import annotations

from heapq import nsmallest

import msgspec

from app.library.compatibility_report import Meaning, Overlap
from app.library.vocabulary import Vocabulary, is_same_part

_NAMED = 3
"""Differing ids that are named."""


class Differing(msgspec.Struct, frozen=True):
    """Ids that mean different tokens: how many, and the first of them."""

    count: int = 0
    first: tuple[Meaning, ...] = ()


def differing(ours: Vocabulary, theirs: Vocabulary) -> tuple[Differing, Differing]:
    """The ids that mean different tokens: ordinary ones, and those of added tokens.

    A row of the output layer that no token belongs to is padding, and no difference.
    """
    if ours is theirs:
        return Differing(), Differing()
    ids = {id_ for id_, _ in ours.tokens.items() ^ theirs.tokens.items()}
    ordinary = {id_ for side in (ours, theirs) for id_ in (ids & side.tokens.keys()) - side.added}
    return _told(ordinary, ours, theirs), _told(ids - ordinary, ours, theirs)


def _told(ids: set[int], ours: Vocabulary, theirs: Vocabulary) -> Differing:
    first = nsmallest(_NAMED, ids)
    named = (Meaning(id_, ours.tokens.get(id_), theirs.tokens.get(id_)) for id_ in first)
    return Differing(len(ids), tuple(named))


def overlap(ours: Vocabulary, theirs: Vocabulary) -> Overlap:
    """How much of each is the other's too, by the text of the tokens."""
    mine, other = ours.spellings(), theirs.spellings()
    shared = len(mine.keys() & other.keys())
    return Overlap(shared, shared / max(len(mine), 1), shared / max(len(other), 1))


def cut_differently(ours: Vocabulary, theirs: Vocabulary) -> tuple[str, ...]:
    """The parts of the two tokenizers by which they may cut a text differently."""
    if ours is theirs:
        return ()
    parts, others = ours.parts(), theirs.parts()
    return tuple(name for name, part in parts.items() if not is_same_part(part, others[name]))
