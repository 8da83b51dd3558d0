"""How long a person waits: percentiles of the gaps between chunks, and of time a token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Percentiles:
    """Values that half, nine in ten, and nineteen in twenty of all do not exceed."""

    p50: float
    p90: float
    p95: float


def percentiles(
    values: Sequence[float], weights: Sequence[int] | None = None
) -> Percentiles | None:
    """For each share, the smallest value that at least this share of the weight does not exceed;
    None for nothing to measure. Weights are whole numbers; without any, all weigh the same.
    """
    counted = np.ones(len(values), dtype=np.int64) if weights is None else np.asarray(weights)
    if len(counted) != len(values):
        raise ValueError("There is one weight for each value.")
    order = np.argsort(np.asarray(values, dtype=np.float64), kind="stable")
    reached = np.cumsum(counted[order])
    if not len(reached) or reached[-1] <= 0:
        return None
    found = [
        float(values[order[np.argmax(100 * reached >= share * reached[-1])]])
        for share in (50, 90, 95)
    ]
    return Percentiles(*found)


def chunk_gaps(gaps: Sequence[float]) -> Percentiles | None:
    """Percentiles of the seconds between two chunks that were shown, each gap weighing the same."""
    return percentiles(gaps)


def amortised(seconds: Sequence[float], tokens: Sequence[int]) -> Percentiles | None:
    """Percentiles of seconds a token: the k tokens of a round took a k-th of its seconds each."""
    rounds = [(took, k) for took, k in zip(seconds, tokens, strict=True) if k > 0]
    return percentiles([took / k for took, k in rounds], [k for _, k in rounds])
