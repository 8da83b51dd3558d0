"""The χ² law, central and not, as far as a test's number of samples needs it."""

from __future__ import annotations

import math
from collections.abc import Callable

_FINEST = 1e-15
"""A term below this share of the sum changes it no more."""


def cumulative(value: float, freedom: int, *, noncentral: float = 0.0) -> float:
    """The chance that χ² with so many degrees of freedom stays at or below a value.

    Noncentral: the mean over j, Poisson with mean λ/2, of χ² with 2j more degrees of freedom.
    """
    half = noncentral / 2.0
    if half == 0.0:
        return _lower_gamma(freedom / 2.0, value / 2.0)
    reach = int(half + 12.0 * math.sqrt(half) + 40.0)
    return sum(
        math.exp(j * math.log(half) - half - math.lgamma(j + 1))
        * _lower_gamma(freedom / 2.0 + j, value / 2.0)
        for j in range(reach)
    )


def quantile(chance: float, freedom: int) -> float:
    """The value that χ² with so many degrees of freedom does not exceed with this chance."""
    return _root(lambda value: cumulative(value, freedom) >= chance)


def noncentrality(critical: float, freedom: int, *, power: float) -> float:
    """The λ with which noncentral χ² exceeds the critical value with chance `power`."""
    return _root(lambda found: 1.0 - cumulative(critical, freedom, noncentral=found) >= power)


def _root(reached: Callable[[float], bool]) -> float:
    """The smallest number above zero from which on `reached` holds, to nine digits."""
    low, high = 0.0, 1.0
    while not reached(high):
        low, high = high, 2.0 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _lower_gamma(shape: float, x: float) -> float:
    """The regularised lower incomplete gamma function P(a, x), by its series (DLMF 8.11.4)."""
    if x <= 0.0:
        return 0.0
    if x > 2.0 * shape + 200.0:  # the rest is below e^-100 (Chernoff), and the series too large
        return 1.0
    term = total = 1.0 / shape
    step = shape
    while term > _FINEST * total:
        step += 1.0
        term *= x / step
        total += term
    return min(1.0, total * math.exp(shape * math.log(x) - x - math.lgamma(shape)))
