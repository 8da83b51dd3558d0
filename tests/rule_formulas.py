"""Every lossy rule that decides token by token: options to try, and its formula a second time."""

from __future__ import annotations

import math

import numpy as np

from app.run.settings import OptionValue
from app.theory.small_rules import Rule, normalised

Options = dict[str, OptionValue]


def left_over(p, q, _):
    """What speculative sampling draws from after a rejection."""
    left = normalised(np.maximum(p - q, 0.0))
    return left if left.sum() else p


def _typical(p, q, guess):
    entropy = -sum(x * math.log(x + 1e-5) for x in p)
    return float(p[guess] > min(0.2, 0.5 * math.exp(-entropy)))


TOKEN_BY_TOKEN: dict[str, tuple[Options, Rule]] = {
    "lenience": (
        {"lenience": 0.4},
        Rule("", lambda p, q, x: min(1.0, p[x] / (0.4 * q[x])), left_over),
    ),
    "ensemble": (
        {"weight": 0.5},
        Rule("", lambda p, q, x: min(1.0, 0.5 + 0.5 * p[x] / q[x]), left_over),
    ),
    "typical": ({"threshold": 0.2, "delta": 0.5}, Rule("", _typical, lambda p, q, x: p)),
    "synthetic": ({"rates": "0.6, 0.36"}, Rule("", lambda p, q, x: 0.6, left_over)),
}
"""A rule whose decisions depend on several places has a formula of its own, beside its test."""
