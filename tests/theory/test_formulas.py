import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.theory.formulas import (
    acceptance_estimate,
    best_ideal_length,
    best_ideal_lengths,
    block_efficiency,
    expected_tokens,
    expected_tokens_by_position,
    ideal_speedup,
    operations_factor,
)

# Leviathan et al. 2023 (arXiv 2211.17192), Table 1: acceptance, draft length, operations, speed.
TABLE_1 = [
    (0.6, 2, 1.53, 1.96),
    (0.7, 3, 1.58, 2.53),
    (0.8, 2, 1.23, 2.44),
    (0.8, 5, 1.63, 3.69),
    (0.9, 2, 1.11, 2.71),
    (0.9, 10, 1.60, 6.86),
]

# The same, Table 4 ("Exp"): acceptance, cost ratio, draft length, expected speed-up.
TABLE_4 = [
    (0.75, 0.02, 7, 3.2),
    (0.80, 0.04, 7, 3.3),
    (0.82, 0.11, 7, 2.5),
    (0.62, 0.02, 7, 2.3),
    (0.68, 0.04, 5, 2.4),
    (0.71, 0.11, 3, 2.0),
    (0.65, 0.02, 5, 2.4),
    (0.73, 0.04, 5, 2.6),
    (0.74, 0.11, 3, 2.0),
    (0.53, 0.02, 5, 1.9),
    (0.55, 0.04, 3, 1.8),
    (0.56, 0.11, 3, 1.6),
]


@pytest.mark.parametrize(("acceptance", "length", "operations", "speed"), TABLE_1)
def test_the_papers_table_for_a_free_draft(acceptance, length, operations, speed):
    assert round(ideal_speedup(acceptance, length, 0.0), 2) == speed
    assert round(operations_factor(acceptance, length, 0.0), 2) == operations


@pytest.mark.parametrize(("acceptance", "ratio", "length", "published"), TABLE_4)
def test_the_papers_twelve_expected_speedups(acceptance, ratio, length, published):
    # α and c are printed with two digits, so they stand for half a unit to either side.
    low = ideal_speedup(acceptance - 0.005, length, ratio + 0.005)
    high = ideal_speedup(acceptance + 0.005, length, ratio - 0.005)
    assert low - 0.05 <= published <= high + 0.05
    assert ideal_speedup(acceptance, length, ratio) == pytest.approx(published, abs=0.07)


@pytest.mark.parametrize(("acceptance", "published"), [(0.75, 3.3), (0.80, 3.9), (0.87, 4.9)])
def test_the_papers_greedy_lenience_factors(acceptance, published):
    # Appendix A.5: c = 0.015 and a draft length of 8.
    low = ideal_speedup(acceptance - 0.005, 8, 0.015)
    high = ideal_speedup(acceptance + 0.005, 8, 0.015)
    assert low - 0.05 <= published <= high + 0.05


def test_the_papers_bigram():
    # §3.6: acceptance 0.2, a free draft of three tokens, 1.25 times as fast.
    assert round(ideal_speedup(0.2, 3, 0.0), 2) == 1.25


@pytest.mark.parametrize(
    ("acceptance", "ratio", "best"),
    [(0.75, 0.02, 9), (0.8, 0.04, 9), (0.82, 0.11, 6), (0.71, 0.11, 4), (0.56, 0.11, 3)],
)
def test_the_best_length(acceptance, ratio, best):
    assert best_ideal_length(acceptance, ratio) == best


def test_no_length_pays_where_the_draft_costs_more_than_it_brings():
    # Leviathan et al. 2023, Corollary 3.9: only with α > c is there one.
    assert best_ideal_length(0.3, 0.3) == 0
    assert best_ideal_length(0.3, 0.4) == 0
    assert best_ideal_length(0.3, 0.29) == 1


def test_the_gain_is_at_least_that_of_one_guess():
    # Corollary 3.9: with α > c some length gains (1 + α)/(1 + c) or more.
    best = best_ideal_length(0.8, 0.1)
    assert ideal_speedup(0.8, best, 0.1) >= 1.8 / 1.1


def test_the_table_of_best_lengths_has_a_row_an_acceptance():
    table = best_ideal_lengths((0.8, 0.3), (0.04, 0.4))
    assert table[0][0] == 9
    assert table[1][1] == 0
    assert [len(row) for row in table] == [2, 2]


def test_tokens_of_a_round_by_hand():
    # 1 + .8 + .64 + .512 + .4096 + .32768
    assert expected_tokens(0.8, 5) == pytest.approx(3.68928)
    assert expected_tokens(1.0, 5) == 6.0
    assert expected_tokens(0.0, 5) == 1.0
    assert expected_tokens(0.7, 0) == 1.0


def enumerated_tokens(acceptances):
    """Σ over every pattern of kept and not kept, of its chance and what it commits."""
    total = 0.0
    for pattern in itertools.product((True, False), repeat=len(acceptances)):
        chance = 1.0
        for kept, a in zip(pattern, acceptances, strict=True):
            chance *= a if kept else 1.0 - a
        total += chance * ((*pattern, False).index(False) + 1)
    return total


@given(st.lists(st.floats(0.0, 1.0), max_size=6))
def test_tokens_by_position_equal_the_sum_over_every_pattern(acceptances):
    assert expected_tokens_by_position(acceptances) == pytest.approx(enumerated_tokens(acceptances))


@given(st.floats(0.0, 1.0), st.integers(0, 20))
def test_equal_places_give_the_plain_formula(acceptance, length):
    by_position = expected_tokens_by_position([acceptance] * length)
    assert by_position == pytest.approx(expected_tokens(acceptance, length))


@pytest.mark.parametrize("alpha", [0.8, 0.6, 0.9])
def test_the_estimate_recovers_the_acceptance_and_the_plain_rate_does_not(alpha):
    generator = np.random.default_rng(7)
    drafted = [5] * 40_000
    kept = np.minimum(generator.geometric(1 - alpha, 40_000) - 1, 5)
    assert acceptance_estimate(kept.tolist(), drafted) == pytest.approx(alpha, abs=0.005)
    assert kept.sum() / sum(drafted) < alpha - 0.05
    assert block_efficiency((kept + 1).tolist()) == pytest.approx(
        expected_tokens(alpha, 5), rel=0.01
    )


def test_the_estimate_by_hand():
    # Kept 2 of 2, 1 of 3, 0 of 1: three successes, two failures.
    assert acceptance_estimate([2, 1, 0], [2, 3, 1]) == 3 / 5
    assert acceptance_estimate([4, 4], [4, 4]) == 1.0
    assert acceptance_estimate([0], [3]) == 0.0


def test_nothing_tested_has_no_estimate():
    assert acceptance_estimate([], []) is None
    assert acceptance_estimate([0, 0], [0, 0]) is None
    assert block_efficiency([]) is None


def test_block_efficiency_counts_the_rounds_own_token():
    assert block_efficiency([3, 1, 2]) == 2.0


@pytest.mark.parametrize("acceptance", [-0.01, 1.01, float("nan")])
def test_what_is_no_chance_is_refused(acceptance):
    with pytest.raises(ValueError, match="acceptance"):
        expected_tokens(acceptance, 3)
    with pytest.raises(ValueError, match="acceptance"):
        expected_tokens_by_position([0.5, acceptance])


def test_what_is_no_length_is_refused():
    with pytest.raises(ValueError, match="draft length"):
        expected_tokens(0.5, -1)
    with pytest.raises(ValueError, match="keeps"):
        acceptance_estimate([3], [2])
