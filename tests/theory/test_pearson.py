import numpy as np
import pytest
from scipy.stats import chi2, chisquare

from app.theory.audit import audit, tv_bound, tv_bound_of
from app.theory.chi_square import cumulative
from app.theory.pearson import pearson, smallest_seen


def test_large_cells_agree_with_another_library():
    law = [0.5, 0.3, 0.15, 0.05]
    counts = [480, 330, 130, 60]
    found, expected = pearson(counts, law), chisquare(counts, 1000 * np.array(law))
    assert found.cells == 4
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert found.chance == pytest.approx(expected.pvalue, rel=1e-9)


@pytest.mark.parametrize(
    ("law", "counts", "cells"),
    [
        ([0.5, 0.02, 0.02, 0.46], [50, 1, 3, 46], ([50, 50], [50, 50])),
        ([0.03, 0.03, 0.94, 0.0], [2, 4, 93, 1], ([6, 94], [6, 94])),
        ([0.1] * 10, [10] * 10, ([10] * 10, [10] * 10)),
        ([0.96, 0.02, 0.02], [100, 0, 0], ([100], [100])),
    ],
)
def test_neighbours_share_a_cell_until_five_are_expected(law, counts, cells):
    seen, expected = map(np.array, cells)
    found = pearson(counts, law)
    assert found.cells == len(seen)
    assert found.statistic == pytest.approx(((seen - expected) ** 2 / expected).sum(), abs=1e-9)


def test_one_cell_says_nothing():
    assert pearson([3], [1.0]).chance == 1.0
    with pytest.raises(ValueError, match="One cell"):
        smallest_seen(1, 100)


def test_chance_is_even_under_the_law_and_small_off_it():
    law = np.array([0.4, 0.3, 0.2, 0.05, 0.03, 0.02])
    draws = np.random.default_rng(3).multinomial(2000, law, size=400)
    chances = [pearson(one.tolist(), law.tolist()).chance for one in draws]
    assert np.mean(np.array(chances) < 0.5) == pytest.approx(0.5, abs=0.1)
    assert min(chances) > 1e-4
    off = np.array([0.45, 0.25, 0.2, 0.05, 0.03, 0.02])
    assert pearson((2000 * off).astype(int).tolist(), law.tolist()).chance < 1e-4


def test_what_is_seen_is_seen_as_often_as_is_said():
    cells, samples = 16, 3000
    tv = smallest_seen(cells, samples)
    law = np.full(cells, 1 / cells)
    off = law + np.tile([1, -1], cells // 2) * 2 * tv / cells
    draws = np.random.default_rng(4).multinomial(samples, off, size=1000)
    statistic = ((draws - samples / cells) ** 2 / (samples / cells)).sum(axis=1)
    assert (statistic > chi2.ppf(1 - 1e-4, cells - 1)).mean() >= 0.97


def test_a_statistic_beyond_all_measure_has_no_chance():
    assert cumulative(1e6, 255) == 1.0
    assert cumulative(900.0, 3) == pytest.approx(chi2.cdf(900.0, 3))


def test_a_known_law_has_a_bound_no_wider_and_samples_keep_it():
    law = np.array([0.9, *[0.1 / 63] * 63])
    bound = tv_bound_of(law, 500, eta=0.01)
    assert bound < tv_bound(64, 500, eta=0.01) - 0.05
    even = np.full(64, 1 / 64)
    assert tv_bound_of(even, 2000) == tv_bound(64, 2000)
    draws = np.random.default_rng(5).multinomial(500, law, size=1000)
    tvs = 0.5 * np.abs(draws / 500 - law).sum(axis=1)
    assert (tvs > bound).mean() <= 0.01
    assert audit(draws[0].tolist(), law.tolist(), eta=0.01).bound == bound
