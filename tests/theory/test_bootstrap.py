import itertools
import math
import statistics

import numpy as np
import pytest

from app.theory.bootstrap import (
    Pair,
    interval,
    median,
    median_speedup,
    ratio_of_sums,
    speedup_of_means,
    speedup_of_sums,
)


def drawn(prompts, *, seed=0, draws=2000):
    """The weights that a statistic is given."""
    seen = []

    def look(weights):
        seen.append(weights.copy())
        return np.zeros(len(weights))

    interval(look, prompts, seed=seed, draws=draws)
    return np.concatenate(seen[1:])


def pair(prompt, ratio, *, tokens=100, seconds=10.0):
    return Pair(prompt, tokens, seconds / ratio, tokens, seconds)


def test_the_ratio_of_sums_and_of_means_by_hand():
    # A long text at 1.0 times, a short one at 3 times: 110 tokens in 10 + 1/3 against 11 seconds.
    pairs = [
        pair("long", 1.0),
        Pair("short", 10, 1 / 3, 10, 1.0),
    ]
    assert speedup_of_sums(pairs).value == pytest.approx(11 / (10 + 1 / 3))
    # Speeds 10 and 30 against 10 and 10.
    assert speedup_of_means(pairs).value == pytest.approx(40 / 20)
    assert median_speedup(pairs).value == pytest.approx(2.0)


def test_lanes_of_unlike_length_are_compared_by_speed():
    # 300 tokens in 10 s against 100 tokens in 5 s: 30 to 20.
    pairs = [Pair(0, 300, 10.0, 100, 5.0), Pair(1, 300, 10.0, 100, 5.0)]
    found = speedup_of_sums(pairs)
    assert (found.value, found.low, found.high) == pytest.approx((1.5, 1.5, 1.5))


def test_one_pair_has_no_interval():
    assert speedup_of_sums([pair(0, 1.5)]) is None
    assert median_speedup([]) is None
    assert speedup_of_sums([]) is None
    assert ratio_of_sums([], [], prompts=[]) is None


def test_a_lane_that_wrote_nothing_is_not_divided_by():
    silent = Pair("silent", 0, 0.0, 0, 0.0)
    pairs = [pair(0, 1.5), pair(1, 1.5), silent]
    for find in (speedup_of_sums, speedup_of_means, median_speedup):
        found = find(pairs)
        assert (found.value, found.low, found.high) == pytest.approx((1.5, 1.5, 1.5))
        assert find([silent, silent]) is None


def test_two_prompts_give_every_mixture_with_its_chance():
    # Drawing 2 of 2: (2, 0), (1, 1), (0, 2) with chances ¼, ½, ¼.
    weights = drawn(["a", "b"], draws=20_000)
    assert weights.shape == (20_000, 2)
    assert (weights.sum(axis=1) == 2).all()
    assert (weights[:, 0] == 1).mean() == pytest.approx(0.5, abs=0.02)
    assert (weights[:, 0] == 2).mean() == pytest.approx(0.25, abs=0.02)


def test_repetitions_are_drawn_within_the_prompts_that_were():
    # By enumeration: two prompts with two repetitions each, two draws of prompts, and for each of
    # them two draws of its repetitions.
    chances = {}
    for prompts in itertools.product((0, 1), repeat=2):
        for places in itertools.product((0, 1), repeat=4):
            weights = [0, 0, 0, 0]
            for slot, place in enumerate(places):
                weights[2 * prompts[slot // 2] + place] += 1
            key = tuple(weights)
            chances[key] = chances.get(key, 0.0) + 1 / 64
    rows = drawn(["a", "a", "b", "b"], draws=40_000)
    found = {tuple(row): 0 for row in rows.astype(int).tolist()}
    for row in rows.astype(int).tolist():
        found[tuple(row)] += 1
    assert set(found) == set(chances)
    for key, chance in chances.items():
        assert found[key] / 40_000 == pytest.approx(chance, abs=0.01)


def test_prompts_with_unlike_numbers_of_repetitions_are_drawn_alike():
    rows = drawn(["a", "b", "b", "b"], draws=20_000)
    # Each prompt is drawn once on average; a drawn prompt yields as many draws as it has places.
    assert rows.mean(axis=0) == pytest.approx([1.0] * 4, abs=0.03)
    assert set(rows[:, 1:].sum(axis=1)) == {0.0, 3.0, 6.0}


def test_medians_of_resamples_are_medians_of_what_was_drawn():
    values = [1.9, 1.1, 1.4, 1.2, 3.0, 1.3, 1.25]
    prompts = [0, 0, 1, 1, 2, 2, 2]
    expected = [
        statistics.median(np.repeat(values, row.astype(int)).tolist())
        for row in drawn(prompts, seed=5)
    ]
    low, high = np.quantile(expected, [0.025, 0.975])
    found = median(values, prompts=prompts, seed=5, draws=2000)
    assert (found.value, found.low, found.high) == pytest.approx((1.3, low, high))


def test_an_even_number_has_the_mean_of_both_middles():
    assert median([4.0, 1.0, 2.0, 9.0], prompts=[0, 1, 2, 3]).value == 3.0


def test_the_interval_of_a_mean_is_the_normal_one():
    values = np.random.default_rng(1).normal(5.0, 2.0, 400)
    found = ratio_of_sums(values.tolist(), [1.0] * 400, prompts=range(400))
    half = 1.96 * values.std() / math.sqrt(400)
    assert found.value == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half, abs=0.03)
    assert found.high == pytest.approx(values.mean() + half, abs=0.03)


def test_repeating_a_prompt_adds_nothing_where_repetitions_agree():
    # Resampling all pairs alike would narrow the interval by √5: it takes repetitions for prompts.
    ratios = np.random.default_rng(2).uniform(1.0, 2.0, 30)
    once = speedup_of_sums([pair(i, r) for i, r in enumerate(ratios)])
    often = speedup_of_sums([pair(i, r) for i, r in enumerate(ratios) for _ in range(5)])
    assert often.high - often.low == pytest.approx(once.high - once.low, rel=0.05)


def test_the_same_seed_gives_the_same_interval():
    pairs = [pair(i, 1 + i / 10) for i in range(6)]
    assert speedup_of_sums(pairs, seed=3) == speedup_of_sums(pairs, seed=3)
    assert speedup_of_sums(pairs, seed=3) != speedup_of_sums(pairs, seed=4)


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(11)
    trials, held = 250, 0
    between, within = 0.2, 0.1
    # Speculative seconds are 10·e^-x, x normal: their mean is 10·e^(σ²/2).
    truth = math.exp(-(between**2 + within**2) / 2)
    for trial in range(trials):
        prompts = generator.normal(0.0, between, 40)
        logs = prompts[:, None] + generator.normal(0.0, within, (40, 3))
        pairs = [pair(i, math.exp(x)) for i, row in enumerate(logs) for x in row]
        found = speedup_of_sums(pairs, seed=trial, draws=500)
        held += found.low <= truth <= found.high
    assert 0.90 <= held / trials <= 0.985
