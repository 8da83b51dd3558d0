import itertools
from dataclasses import replace

import numpy as np
import pytest

from app.theory.formulas import expected_tokens, expected_tokens_by_position
from app.theory.small_rules import (
    EXACT,
    GREEDY,
    POINT_MASS,
    law_of_round,
    law_of_text,
    likeliest,
    normalised,
    tokens_of_round,
    total_variation,
)

GAMMA = 2


def random_table(seed, *, vocabulary=4, zeros=False):
    generator = np.random.default_rng(seed)
    table = {}
    for size in range(GAMMA + 1):
        for prefix in itertools.product(range(vocabulary), repeat=size):
            weights = generator.random(vocabulary) ** 3
            if zeros:
                weights[generator.integers(vocabulary)] = 0.0
            table[prefix] = weights / weights.sum()
    return table


def same_everywhere(law):
    """A table in which no token depends on those before it."""
    law = np.asarray(law)
    prefixes = itertools.chain.from_iterable(
        itertools.product(range(len(law)), repeat=size) for size in range(GAMMA + 1)
    )
    return dict.fromkeys(prefixes, law)


def distance(rule, target, draft):
    found = law_of_round(rule, target, draft, draft_length=GAMMA)
    assert found.sum() == pytest.approx(1.0)
    return total_variation(found, law_of_text(target, GAMMA + 1))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("zeros", [False, True])
def test_the_exact_rule_gives_the_targets_law(seed, zeros):
    target, draft = random_table(seed, zeros=zeros), random_table(seed + 100, zeros=zeros)
    assert distance(EXACT, target, draft) < 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_a_certain_guess_gives_the_targets_law(seed):
    assert distance(POINT_MASS, random_table(seed), likeliest(random_table(seed + 100))) < 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_a_certain_guess_is_the_exact_rules_with_a_point_mass(seed):
    target, draft = random_table(seed), likeliest(random_table(seed + 100))
    first = law_of_round(EXACT, target, draft, draft_length=GAMMA)
    assert first == pytest.approx(law_of_round(POINT_MASS, target, draft, draft_length=GAMMA))


@pytest.mark.parametrize("seed", range(5))
def test_the_greedy_rule_writes_the_greedy_text_for_certain(seed):
    table = random_table(seed)
    text = ()
    for _ in range(GAMMA + 1):
        text += (int(np.argmax(table[text])),)
    for draft in (likeliest(random_table(seed + 100)), random_table(seed + 200)):
        found = law_of_round(GREEDY, likeliest(table), draft, draft_length=GAMMA)
        assert found[text] == pytest.approx(1.0, abs=1e-12)
        assert np.count_nonzero(found) == 1


def test_of_equal_tokens_the_lowest_is_greedy():
    assert likeliest({(): np.array([0.2, 0.4, 0.4])})[()].tolist() == [0.0, 1.0, 0.0]


def test_one_round_by_hand():
    # p = (1/3, 2/3), q = (2/3, 1/3), one guess. Guess 0 (2/3): kept with ½, else 1. Guess 1: kept.
    target, draft = same_everywhere([1 / 3, 2 / 3]), same_everywhere([2 / 3, 1 / 3])
    found = law_of_round(EXACT, target, draft, draft_length=1)
    assert found.sum(axis=1) == pytest.approx([1 / 3, 2 / 3])
    # Two tokens unless the guess 0 is thrown away: 1 + 1/3 + 1/3.
    assert tokens_of_round(EXACT, target, draft, draft_length=1) == pytest.approx(5 / 3)


def test_the_published_mean_of_accepted_tokens():
    # Sun et al. 2024 (arXiv 2403.10444): 10/9 accepted of two guesses.
    target, draft = same_everywhere([1 / 3, 2 / 3]), same_everywhere([2 / 3, 1 / 3])
    tokens = tokens_of_round(EXACT, target, draft, draft_length=2)
    assert tokens - 1 == pytest.approx(10 / 9)


@pytest.mark.parametrize("length", [0, 1, 2])
def test_alike_places_commit_what_the_formula_says(length):
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    alpha = 0.2 + 0.3 + 0.2
    found = tokens_of_round(EXACT, same_everywhere(p), same_everywhere(q), draft_length=length)
    assert found == pytest.approx(expected_tokens(alpha, length))


def test_unlike_places_commit_what_the_formula_by_place_says():
    target, draft = random_table(3), random_table(4)
    # The chance of place 2 among the rounds that get there, each first token with its weight.
    kept = np.minimum(target[()], draft[()])
    then = [np.minimum(target[(x,)], draft[(x,)]).sum() for x in range(4)]
    places = [kept.sum(), float(kept @ then) / kept.sum()]
    found = tokens_of_round(EXACT, target, draft, draft_length=2)
    assert found == pytest.approx(expected_tokens_by_position(places))


FLAT = np.full(4, 0.25)

MUTANTS = {
    "samples the target after a rejection": replace(EXACT, residual=lambda p, q, guess: p),
    "divides by another law than was drawn from": replace(
        EXACT, accept=lambda p, q, guess: min(1.0, p[guess] / FLAT[guess])
    ),
    "keeps what is likelier under the draft": replace(
        EXACT, accept=lambda p, q, guess: min(1.0, q[guess] / p[guess])
    ),
    "forgets to rule the rejected guess out": replace(POINT_MASS, residual=lambda p, q, guess: p),
    "is lenient": replace(EXACT, accept=lambda p, q, guess: min(1.0, p[guess] / (0.5 * q[guess]))),
    "narrows the residual to its likeliest token": replace(
        EXACT,
        residual=lambda p, q, guess: np.eye(len(p))[int(np.argmax(np.maximum(p - q, 0)))],
    ),
    "keeps every guess": replace(EXACT, accept=lambda p, q, guess: 1.0),
}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_planted_faults_change_the_law(mutant):
    # A fault need not show in every table: a residual of one token has nothing to narrow.
    seen = []
    for seed in range(3):
        target, draft = random_table(seed), random_table(seed + 100)
        draft = likeliest(draft) if mutant.name == "point mass" else draft
        seen.append(distance(mutant, target, draft))
    assert max(seen) > 0.01


def test_total_variation_by_hand():
    assert total_variation(np.array([0.5, 0.5, 0.0]), np.array([0.2, 0.5, 0.3])) == pytest.approx(
        0.3
    )


def test_nothing_to_normalise_stays_nothing():
    assert normalised(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
