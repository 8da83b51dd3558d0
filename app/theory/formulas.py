"""The formulas of speculative decoding for chains of guesses, with their sources.

α is the acceptance (the chance that a tested guess is kept), γ the draft length, c the time of a
draft step in single steps of the target. Leviathan et al. 2023 is arXiv 2211.17192.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

LONGEST = 64
"""The longest draft that a search without measured costs looks at."""


def expected_tokens(acceptance: float, draft_length: int) -> float:
    """E[m] = (1 - α^(γ+1)) / (1 - α): tokens a round, its own one included, if every guess is
    kept with the same chance independently of the others (Leviathan et al. 2023, Eq. 1).
    """
    _check(acceptance, draft_length)
    return sum(math.pow(acceptance, kept) for kept in range(draft_length + 1))


def expected_tokens_by_position(acceptances: Sequence[float]) -> float:
    """E[m] = 1 + Σ over j of a_1 … a_j: tokens a round, where the guess at place j is kept with
    chance a_j once all before it were; holds without independence, for a_j so conditioned.
    """
    tokens = reached = 1.0
    for acceptance in acceptances:
        _check(acceptance, len(acceptances))
        reached *= acceptance
        tokens += reached
    return tokens


def ideal_speedup(acceptance: float, draft_length: int, cost_ratio: float) -> float:
    """E[m] / (γ·c + 1): the speed-up if a pass over γ + 1 rows costs no more than over one
    (Leviathan et al. 2023, Theorem 3.8).
    """
    return expected_tokens(acceptance, draft_length) / (draft_length * cost_ratio + 1.0)


def operations_factor(acceptance: float, draft_length: int, operations_ratio: float) -> float:
    """(γ·ĉ + γ + 1) / E[m]: by how much the arithmetic grows, where ĉ is the draft's arithmetic a
    token by the target's (Leviathan et al. 2023, Theorem 3.11).
    """
    rows = draft_length * operations_ratio + draft_length + 1.0
    return rows / expected_tokens(acceptance, draft_length)


def acceptance_estimate(accepted: Sequence[int], drafted: Sequence[int]) -> float | None:
    """α̂ = Σn / (Σn + rounds with n < γ), from rounds that kept n of γ guesses; None for no test.

    The maximum of the likelihood of a geometric law that the draft's end cuts off: a round in
    which all were kept tells of γ successes and of no failure.
    """
    if any(not 0 <= n <= length for n, length in zip(accepted, drafted, strict=True)):
        raise ValueError("A round keeps from none to all of its guesses.")
    kept = sum(accepted)
    failed = sum(n < length for n, length in zip(accepted, drafted, strict=True))
    return kept / (kept + failed) if kept + failed else None


def block_efficiency(emitted: Sequence[int]) -> float | None:
    """Mean of the tokens that rounds committed, their own one included (Sun et al. 2024); None
    for no round.
    """
    return sum(emitted) / len(emitted) if emitted else None


def best_ideal_length(acceptance: float, cost_ratio: float, *, longest: int = LONGEST) -> int:
    """γ*: the draft length of the largest ideal speed-up, the shortest of equals; 0 means that no
    guessing pays (Leviathan et al. 2023, §3.5).
    """
    return max(range(longest + 1), key=lambda length: ideal_speedup(acceptance, length, cost_ratio))


def best_ideal_lengths(
    acceptances: Sequence[float], cost_ratios: Sequence[float], *, longest: int = LONGEST
) -> tuple[tuple[int, ...], ...]:
    """The table of γ*: one row an acceptance, one column a cost ratio."""
    return tuple(
        tuple(best_ideal_length(acceptance, ratio, longest=longest) for ratio in cost_ratios)
        for acceptance in acceptances
    )


def _check(acceptance: float, draft_length: int) -> None:
    """Raises ValueError for what is no chance or no length."""
    if not 0.0 <= acceptance <= 1.0:
        raise ValueError(f"An acceptance lies from 0 to 1, not at {acceptance!r}.")
    if draft_length < 0:
        raise ValueError(f"A draft length is 0 or more, not {draft_length!r}.")
