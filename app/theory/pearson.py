"""Pearson's χ² test of counts against the law that they should follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.theory.audit import ENOUGH
from app.theory.chi_square import cumulative, noncentrality, quantile


@dataclass(frozen=True)
class Pearson:
    """How far counts lie from their law, in cells large enough for a normal count."""

    statistic: float
    """Σ (seen - expected)² / expected over the cells."""
    cells: int

    @property
    def chance(self) -> float:
        """How often samples of the law itself lie this far off or farther."""
        if self.cells < 2:
            return 1.0
        return max(0.0, 1.0 - cumulative(self.statistic, self.cells - 1))


def pearson(counts: Sequence[int], law: Sequence[float]) -> Pearson:
    """The test of counts against a law, place by place.

    Neighbours share a cell until five are expected in it: texts in the order of their tokens then
    keep their beginnings apart.
    """
    seen = np.asarray(counts, dtype=np.float64)
    expected = np.asarray(law, dtype=np.float64) * seen.sum()
    seen, expected = _pooled(seen, expected)
    return Pearson(float(((seen - expected) ** 2 / expected).sum()), len(expected))


def smallest_seen(cells: int, samples: int, *, power: float = 0.99, level: float = 1e-4) -> float:
    """The total variation over the cells from which on the test sees it, with chance `power`.

    In the worst case, where χ² divergence is as small as 4·TV² allows. Raises ValueError for one
    cell, which sees nothing.
    """
    if cells < 2:
        raise ValueError("One cell alone sees no difference.")
    needed = noncentrality(quantile(1.0 - level, cells - 1), cells - 1, power=power)
    return math.sqrt(needed / (4.0 * samples))


Numbers = NDArray[np.float64]


def _pooled(seen: Numbers, expected: Numbers) -> tuple[Numbers, Numbers]:
    """The counts and what is expected of them, by cell."""
    starts, within = [0], 0.0
    for place, more in enumerate(expected):
        if within >= ENOUGH:
            starts.append(place)
            within = 0.0
        within += more
    if within < ENOUGH and len(starts) > 1:
        starts.pop()
    return np.add.reduceat(seen, starts), np.add.reduceat(expected, starts)
