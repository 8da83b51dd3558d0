"""How long a person waits: percentiles of the gaps between chunks, and of time a token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Percentiles:
    """Values that half, nine in ten, and nineteen in twenty of all do not exceed."""

    p50: float
    p90: float
    p95: float


def percentiles(values: Sequence[float]) -> Percentiles | None:
    """For each share, the smallest value that at least this share of all do not exceed; None for
    nothing to measure.
    """
    ascending = sorted(values)
    count = len(ascending)
    if not count:
        return None
    # The place of the first value at which count * share / 100 values are reached.
    return Percentiles(*(float(ascending[-(-count * share // 100) - 1]) for share in (50, 90, 95)))
