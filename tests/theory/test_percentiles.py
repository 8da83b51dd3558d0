from hypothesis import given
from hypothesis import strategies as st

from app.theory.percentiles import Percentiles, percentiles


def test_ten_values_by_hand():
    assert percentiles([10, 1, 9, 2, 8, 3, 7, 4, 6, 5]) == Percentiles(5, 9, 10)


def test_nothing_has_no_percentiles():
    assert percentiles([]) is None


def test_one_value_is_every_percentile():
    assert percentiles([0.25]) == Percentiles(0.25, 0.25, 0.25)


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=60))
def test_the_smallest_value_that_enough_do_not_exceed(values):
    found = percentiles(values)
    for share, value in ((50, found.p50), (90, found.p90), (95, found.p95)):
        enough = [v for v in values if 100 * sum(w <= v for w in values) >= share * len(values)]
        assert value == min(enough)
