import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.theory.percentiles import Percentiles, amortised, chunk_gaps, percentiles


def test_ten_gaps_by_hand():
    assert chunk_gaps([10, 1, 9, 2, 8, 3, 7, 4, 6, 5]) == Percentiles(5, 9, 10)


def test_tokens_of_a_round_share_its_seconds():
    # .1 four times, .1 twice, .3 once: nine in ten of seven are 6.3, which takes the last one in.
    found = amortised([0.4, 0.3, 0.2], [4, 1, 2])
    assert (found.p50, found.p90, found.p95) == pytest.approx((0.1, 0.3, 0.3))


def test_gaps_and_time_a_token_are_not_the_same():
    assert chunk_gaps([0.4, 0.4]).p50 == 0.4
    assert amortised([0.4, 0.4], [4, 4]).p50 == pytest.approx(0.1)


def test_a_round_without_tokens_counts_for_none():
    assert amortised([5.0, 0.2], [0, 2]).p95 == pytest.approx(0.1)


def test_nothing_has_no_percentiles():
    assert percentiles([]) is None
    assert percentiles([1.0], [0]) is None
    assert amortised([1.0], [0]) is None


def test_one_value_is_every_percentile():
    assert percentiles([0.25]) == Percentiles(0.25, 0.25, 0.25)


@given(st.lists(st.tuples(st.floats(0.0, 10.0), st.integers(0, 9)), min_size=1, max_size=30))
def test_weights_stand_for_repeats(rows):
    values, weights = zip(*rows, strict=True)
    if not sum(weights):
        return
    whole = np.repeat(values, weights)
    found = percentiles(values, weights)
    for share, value in ((50, found.p50), (90, found.p90), (95, found.p95)):
        # The smallest value that at least this share of all does not exceed, by counting.
        enough = [v for v in whole if 100 * (whole <= v).sum() >= share * len(whole)]
        assert value == min(enough)


def test_a_weight_belongs_to_each_value():
    with pytest.raises(ValueError, match="weight"):
        percentiles([1.0, 2.0], [1])
