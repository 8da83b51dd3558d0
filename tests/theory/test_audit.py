import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, chi2, ncx2

from app.theory.audit import audit, expected_tv, samples_needed, tv_bound
from app.theory.chi_square import cumulative, quantile
from app.theory.small_rules import EXACT, law_of_round, law_of_text, total_variation

P = np.array([0.5, 0.3, 0.15, 0.05])
Q = np.array([0.25, 0.25, 0.4, 0.1])
TARGET = {(): P} | {(token,): P for token in range(4)}
DRAFT = {(): Q} | {(token,): Q for token in range(4)}


@pytest.mark.parametrize(
    ("categories", "bound"), [(4, 0.0105), (16, 0.0132), (64, 0.0183), (256, 0.0285)]
)
def test_the_bound_for_a_hundred_thousand_samples(categories, bound):
    assert round(tv_bound(categories, 100_000, eta=1e-6), 4) == bound


@pytest.mark.parametrize(
    ("categories", "thousands"),
    [(4, (4.5, 28, 114)), (16, (6.4, 40, 161)), (64, (10, 62, 249)), (256, (17, 106, 422))],
)
def test_the_samples_that_a_chi_square_test_needs(categories, thousands):
    for tv, expected in zip((0.05, 0.02, 0.01), thousands, strict=True):
        found = samples_needed(categories, tv) / 1000
        assert round(found, 1 if isinstance(expected, float) else None) == expected


def test_the_test_then_has_the_power_that_was_asked_for():
    # Half the cells 2·TV/k too likely, half too unlikely: χ² divergence is exactly 4·TV².
    categories, tv = 16, 0.05
    samples = samples_needed(categories, tv, power=0.9)
    law = np.full(categories, 1 / categories) + np.tile([1, -1], 8) * 2 * tv / categories
    counts = np.random.default_rng(5).multinomial(samples, law, size=2000)
    expected = samples / categories
    statistic = ((counts - expected) ** 2 / expected).sum(axis=1)
    assert (statistic > chi2.ppf(1 - 1e-4, 15)).mean() == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize(("value", "freedom"), [(0.5, 3), (21.1, 3), (40.0, 15), (330.0, 255)])
def test_chi_square_agrees_with_another_library(value, freedom):
    assert cumulative(value, freedom) == pytest.approx(chi2.cdf(value, freedom), rel=1e-10)
    for noncentral in (1.0, 60.0, 170.0):
        expected = ncx2.cdf(value, freedom, noncentral)
        found = cumulative(value, freedom, noncentral=noncentral)
        assert found == pytest.approx(expected, abs=1e-10)


def test_quantiles_agree_with_another_library():
    for freedom in (1, 3, 15, 255):
        assert quantile(0.9999, freedom) == pytest.approx(chi2.ppf(0.9999, freedom), rel=1e-7)
    assert cumulative(0.0, 3) == 0.0


def mean_tv(categories, samples):
    """E[TV] of an even law: k/2 times the mean deviation of one binomial share, summed exactly."""
    counts = np.arange(samples + 1)
    shares = np.abs(counts / samples - 1 / categories)
    return categories / 2 * float(binom.pmf(counts, samples, 1 / categories) @ shares)


@pytest.mark.parametrize(
    ("categories", "samples"),
    [(2, 10), (4, 20), (4, 1000), (16, 80), (16, 2000), (64, 32), (64, 100), (256, 128)],
)
def test_the_mean_never_exceeds_what_is_expected(categories, samples):
    found = mean_tv(categories, samples)
    assert found <= expected_tv(categories, samples)
    assert found > 0.55 * expected_tv(categories, samples)


def test_few_samples_need_the_wider_bound():
    assert mean_tv(64, 32) > math.sqrt(63 / (2 * math.pi * 32))


def test_an_audit_by_hand():
    # Shares (.4, .6) against (.5, .5).
    found = audit([40, 60], [0.5, 0.5])
    assert (found.samples, found.categories, found.impossible) == (100, 2, 0)
    assert found.tv == pytest.approx(0.1)
    expected = math.sqrt(1 / (2 * math.pi * 100)) + math.sqrt(math.log(1e6) / 200)
    assert found.bound == pytest.approx(expected)
    assert found.holds


def test_what_the_law_rules_out_never_holds():
    found = audit([500, 499, 1], [0.5, 0.5, 0.0])
    assert found.categories == 2
    assert found.tv < found.bound
    assert found.impossible == 1
    assert not found.holds


def test_a_sound_rule_passes_and_planted_biases_do_not():
    samples = 100_000
    generator = np.random.default_rng(9)
    law = law_of_text(TARGET, 2).ravel()
    sound = law_of_round(EXACT, TARGET, DRAFT, draft_length=1).ravel()
    assert audit(generator.multinomial(samples, sound).tolist(), law.tolist()).holds
    for mutant in (
        replace(EXACT, residual=lambda p, q, guess: p),
        replace(EXACT, accept=lambda p, q, guess: min(1.0, p[guess] / (0.7 * q[guess]))),
    ):
        biased = law_of_round(mutant, TARGET, DRAFT, draft_length=1).ravel()
        counts = generator.multinomial(samples, biased).tolist()
        found = audit(counts, law.tolist())
        assert not found.holds
        assert found.tv == pytest.approx(total_variation(biased, law), abs=0.01)


def test_chance_alone_seldom_crosses_the_bound():
    # At η = 5 %; McDiarmid's inequality is generous, so far fewer do.
    law = [0.4, 0.3, 0.2, 0.1]
    counts = np.random.default_rng(4).multinomial(400, law, size=2000)
    crossed = sum(not audit(row.tolist(), law, eta=0.05).holds for row in counts)
    assert crossed / 2000 <= 0.05


@pytest.mark.parametrize(
    ("counts", "law"),
    [([0, 0], [0.5, 0.5]), ([1], [0.5, 0.5]), ([1, 1], [0.5, 0.6]), ([1, 1], [1.5, -0.5])],
)
def test_what_cannot_be_compared_is_refused(counts, law):
    with pytest.raises(ValueError, match=r"audit needs|add up"):
        audit(counts, law)
