"""What a draft head takes of memory, whoever made it."""

from __future__ import annotations

import msgspec


class HeadSize(msgspec.Struct, frozen=True):
    """Counts of numbers, each held in what the target computes in."""

    weights: int
    """In memory for the head alone; what it shares with its target is not among them."""
    kept: int
    """Of the keys and values of one token, in the head's own cache."""
    features: int
    """That the target's session keeps of one token."""
