"""Is a law kept? Counts of what was written against the law that it should follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.theory.chi_square import noncentrality, quantile

Law = NDArray[np.float64]

ETA = 1e-6
"""How often, at most, an audit cries out without cause."""

ENOUGH = 5
"""Samples a category from which a count behaves as a normal variable does."""


@dataclass(frozen=True)
class Audit:
    """How far counts lie from their law, and how far chance alone would let them."""

    samples: int
    categories: int
    """Those that the law gives a chance above zero."""
    tv: float
    """Total variation between the counts' shares and the law."""
    bound: float
    """Chance alone exceeds this at most as often as was agreed (`eta`)."""
    impossible: int
    """Samples in categories that the law rules out."""

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against the law."""
        return not self.impossible and self.tv <= self.bound


def audit(counts: Sequence[int], law: Sequence[float], *, eta: float = ETA) -> Audit:
    """Compares counts of categories with the law they should follow, place by place.

    Raises ValueError where there is nothing to compare, or the law does not add up to 1.
    """
    seen, expected = np.asarray(counts, dtype=np.float64), np.asarray(law, dtype=np.float64)
    samples, categories = int(seen.sum()), int((expected > 0.0).sum())
    if seen.shape != expected.shape or samples < 1 or seen.min() < 0:
        raise ValueError("An audit needs one count for each category, and at least one sample.")
    if expected.min() < 0.0 or not math.isclose(expected.sum(), 1.0, abs_tol=1e-6):
        raise ValueError("The chances of a law add up to 1.")
    return Audit(
        samples=samples,
        categories=categories,
        tv=0.5 * float(np.abs(seen / samples - expected).sum()),
        bound=tv_bound_of(expected, samples, eta=eta),
        impossible=int(seen[expected == 0.0].sum()),
    )


def expected_tv(categories: int, samples: int) -> float:
    """The most that the mean total variation of N samples from their own law of k categories can
    be: √((k-1)/(2πN)), and ½·√((k-1)/N) where samples are too few for a normal count.

    By Cauchy and Schwarz over the categories, with E|z| = √(2/π) of a normal z, or E|z| ≤ 1.
    """
    if categories < 1 or samples < 1:
        raise ValueError("There is at least one category and one sample.")
    each = math.sqrt(2.0 / math.pi) if samples >= ENOUGH * categories else 1.0
    return 0.5 * each * math.sqrt((categories - 1) / samples)


def tv_bound(categories: int, samples: int, *, eta: float = ETA) -> float:
    """The total variation that N samples from their own law exceed with chance η at most: the mean
    and √(ln(1/η)/(2N)), as one sample moves it by 1/N at most (McDiarmid 1989).
    """
    return expected_tv(categories, samples) + _deviation(samples, eta)


def tv_bound_of(law: Sequence[float] | Law, samples: int, *, eta: float = ETA) -> float:
    """The same for a law that is known: as E|count - Np| is at most √(Np(1-p)), rare categories
    widen the bound by little.
    """
    chances = np.asarray(law, dtype=np.float64)
    mean = 0.5 * float(np.sqrt(chances * (1.0 - chances) / samples).sum())
    categories = int((chances > 0.0).sum())
    return min(mean, expected_tv(categories, samples)) + _deviation(samples, eta)


def samples_needed(categories: int, tv: float, *, power: float = 0.99, level: float = 1e-4) -> int:
    """Samples with which Pearson's χ² test at `level` sees a law this far off with chance `power`.

    In the worst case, where χ² divergence is as small as 4·TV² allows.
    """
    critical = quantile(1.0 - level, categories - 1)
    needed = noncentrality(critical, categories - 1, power=power)
    return math.ceil(needed / (4.0 * tv * tv))


def _deviation(samples: int, eta: float) -> float:
    """How far above its mean a total variation lies with chance η at most."""
    return math.sqrt(math.log(1.0 / eta) / (2.0 * samples))
