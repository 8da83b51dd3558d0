import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.theory.costs import (
    StepCosts,
    best_draft_length,
    break_even,
    expectations,
    speedup,
    tokens_per_loop,
)
from app.theory.formulas import ideal_speedup

RISING = StepCosts({1: 10.0, 2: 11.0, 3: 12.0, 5: 15.0})


def flat(ratio, longest=64):
    return StepCosts(dict.fromkeys(range(1, longest + 2), 1.0), draft_step=ratio)


def test_flat_passes_give_the_papers_speedup():
    for length in (1, 4, 9):
        assert speedup(0.7, length, flat(0.05)) == pytest.approx(ideal_speedup(0.7, length, 0.05))


@pytest.mark.parametrize(
    ("acceptance", "ratio", "best"),
    [(0.75, 0.02, 9), (0.8, 0.04, 9), (0.82, 0.11, 6), (0.71, 0.11, 4), (0.56, 0.11, 3)],
)
def test_flat_passes_give_the_known_best_lengths(acceptance, ratio, best):
    assert best_draft_length(acceptance, flat(ratio)).draft_length == best


def test_every_part_of_a_round_by_hand():
    # E = 1 + .5 + .25; a round takes 2·3 + 12 + 2 = 20; a baseline token 10 + 1.
    costs = StepCosts({1: 10.0, 3: 12.0}, draft_step=3.0, overhead=2.0, baseline_overhead=1.0)
    assert costs.round_seconds(2) == 20.0
    assert costs.single == 11.0
    assert speedup(0.5, 2, costs) == pytest.approx(1.75 * 11 / 20)


def test_only_measured_widths_are_looked_at():
    # By hand, α = ½: 15/11, 17.5/12, 19.375/15; width 4 was not measured.
    found = {e.draft_length: e.speedup for e in expectations(0.5, RISING)}
    assert found == pytest.approx({0: 1.0, 1: 15 / 11, 2: 17.5 / 12, 4: 19.375 / 15})
    assert best_draft_length(0.5, RISING).draft_length == 2
    assert speedup(0.5, 3, RISING) is None
    assert break_even(3, RISING) is None


def test_of_equal_lengths_the_shorter_is_best():
    # 15/12 and 17.5/14 are both 1.25.
    costs = StepCosts({1: 10.0, 2: 11.0, 3: 12.0}, draft_step=1.0)
    assert best_draft_length(0.5, costs).draft_length == 1


def test_not_to_speculate_is_best_where_nothing_pays():
    dear = StepCosts({1: 1.0, 2: 2.1, 3: 3.2}, draft_step=0.1)
    best = best_draft_length(0.9, dear)
    assert (best.draft_length, best.speedup, best.tokens_per_loop) == (0, 1.0, 1.0)


def test_no_speculation_costs_nothing_extra():
    assert speedup(0.9, 0, StepCosts({1: 1.0}, overhead=5.0)) == 1.0


def test_chances_by_place_end_where_they_are_known():
    assert tokens_per_loop((0.8, 0.5), 2) == pytest.approx(1 + 0.8 + 0.4)
    assert tokens_per_loop((0.8, 0.5), 3) is None
    assert [e.draft_length for e in expectations((0.8, 0.5), RISING)] == [0, 1, 2]


def test_places_that_fall_off_shorten_the_best_draft():
    costs = flat(0.05, longest=4)
    assert best_draft_length(0.9, costs).draft_length == 4
    # 1.9/1.05 = 1.81 for one guess, 1.945/1.1 = 1.77 for two.
    assert best_draft_length((0.9, 0.05, 0.05, 0.05), costs).draft_length == 1


def test_break_even_by_hand():
    # One guess: 1 + α = 1.5. Two guesses: 1 + α + α² = 1.75.
    assert break_even(1, StepCosts({1: 1.0, 2: 1.3}, draft_step=0.2)) == pytest.approx(0.5)
    assert break_even(2, StepCosts({1: 1.0, 3: 1.35}, draft_step=0.2)) == pytest.approx(0.5)


def test_no_acceptance_breaks_even_where_a_round_costs_more_than_its_tokens():
    assert break_even(1, StepCosts({1: 1.0, 2: 2.1})) is None
    assert break_even(1, StepCosts({1: 1.0, 2: 2.0})) == 1.0


def test_any_acceptance_breaks_even_where_a_round_costs_no_more_than_a_step():
    assert break_even(1, StepCosts({1: 1.0, 2: 1.0})) == 0.0
    assert break_even(1, StepCosts({1: 4.15, 2: 2.0})) == 0.0


def test_no_draft_has_no_break_even():
    assert break_even(0, RISING) is None


@given(st.integers(1, 12), st.floats(1.001, 1.9), st.floats(0.0, 0.08))
def test_at_break_even_the_speedup_is_one(length, verify, step):
    costs = StepCosts({1: 1.0, length + 1: verify}, draft_step=step)
    found = break_even(length, costs)
    if found is None:
        assert speedup(1.0, length, costs) < 1.0
    else:
        assert speedup(found, length, costs) == pytest.approx(1.0, abs=1e-9)
        assert speedup(min(1.0, found + 0.01), length, costs) >= 1.0


@pytest.mark.parametrize(
    "parts",
    [{"passes": {2: 1.0}}, {"passes": {1: 0.0}}, {"passes": {1: 1.0}, "draft_step": -1.0}],
)
def test_costs_that_cannot_be_are_refused(parts):
    with pytest.raises(ValueError, match="Costs"):
        StepCosts(**parts)


def test_rounds_without_a_guess_are_averaged_in_by_hand():
    # Half the rounds bring 1.5 tokens for 0.2 + 1.4 + 0.1, half bring 1 for 1 + 0.1.
    costs = StepCosts({1: 1.0, 2: 1.4}, draft_step=0.2, overhead=0.1, idle=0.5)
    assert costs.round_seconds(1) == pytest.approx((1.7 + 1.1) / 2)
    assert speedup(0.5, 1, costs) == pytest.approx(1.25 / 1.4)
    # (1 + α + 1)/2 = 1.4.
    assert break_even(1, costs) == pytest.approx(0.8)
    assert break_even(1, StepCosts({1: 1.0, 2: 1.9}, overhead=0.3, idle=0.5)) is None


def test_a_draft_that_never_guesses_gains_nothing():
    assert speedup(0.9, 4, StepCosts({1: 1.0, 5: 1.1}, idle=1.0)) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="share"):
        StepCosts({1: 1.0}, idle=1.1)
