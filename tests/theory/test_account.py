import numpy as np
import pytest

from app.theory.account import account, prediction
from app.theory.costs import StepCosts

COSTS = StepCosts({1: 1.0, 3: 1.5}, draft_step=0.1, overhead=0.1, baseline_overhead=0.05)


def test_an_account_by_hand():
    # Two rounds of 0.2 + 1.5 + 0.1, one of 0 + 1 + 0.1; six baseline tokens of 1.05.
    found = account([3, 3, 1], [0.2, 0.2, 0.0], committed=6, costs=COSTS)
    assert found.speculative_seconds == pytest.approx(4.7)
    assert found.baseline_seconds == pytest.approx(6.3)
    assert found.speedup == pytest.approx(6.3 / 4.7)


def test_time_that_adds_up_and_a_planted_slowdown_that_does_not():
    found = account([3] * 100, [0.2] * 100, committed=220, costs=COSTS)
    assert found.adds_up(1.02 * 180.0)
    slower_verifier = 100 * (0.2 + 1.5 * 1.3 + 0.1)
    assert not found.adds_up(slower_verifier)
    assert found.unexplained(slower_verifier) == pytest.approx(0.25)


def test_a_width_without_a_cost_leaves_no_account():
    assert account([3, 2], [0.2, 0.1], committed=3, costs=COSTS) is None


def test_no_rounds_have_nothing_to_divide_by():
    found = account([], [], committed=0, costs=COSTS)
    assert (found.speedup, found.unexplained(1.0), found.adds_up(1.0)) == (None, None, None)


def test_rounds_and_their_drafting_belong_together():
    with pytest.raises(ValueError, match="zip"):
        account([3, 3], [0.2], committed=2, costs=COSTS)


def test_many_rounds_of_chance_come_to_what_was_predicted():
    kept = np.minimum(np.random.default_rng(3).geometric(0.4, 30_000) - 1, 2)
    found = account([3] * 30_000, [0.2] * 30_000, committed=int(kept.sum()) + 30_000, costs=COSTS)
    assert found.speedup == pytest.approx(prediction(0.6, 2, costs=COSTS).speedup, rel=0.01)


def test_a_prediction_by_hand():
    # E = 1 + .5 + .25; round 0.2 + 1.5 + 0.1; break-even where 1 + α + α² = 1.8/1.05.
    found = prediction(0.5, 2, costs=COSTS)
    assert found.tokens_per_loop == 1.75
    assert found.speedup == pytest.approx(1.75 * 1.05 / 1.8)
    assert 1 + found.break_even + found.break_even**2 == pytest.approx(1.8 / 1.05)
    assert (found.best_draft_length, found.best_speedup) == (2, found.speedup)


def test_a_length_whose_pass_was_not_measured_is_not_predicted():
    found = prediction(0.5, 1, costs=COSTS)
    assert (found.tokens_per_loop, found.speedup, found.break_even) == (1.5, None, None)
    assert found.best_draft_length == 2


def test_rounds_of_chance_with_idle_ones_come_to_what_was_predicted():
    dice = np.random.default_rng(4)
    drafts = np.where(dice.random(40_000) < 0.3, 0, 2)
    kept = np.minimum(np.minimum(dice.geometric(0.4, 40_000) - 1, 2), drafts)
    committed = int(kept.sum()) + 40_000
    found = account(list(drafts + 1), list(0.1 * drafts), committed=committed, costs=COSTS)
    idle = StepCosts(COSTS.passes, draft_step=0.1, overhead=0.1, baseline_overhead=0.05, idle=0.3)
    told = prediction(0.6, 2, costs=idle)
    assert found.speedup == pytest.approx(told.speedup, rel=0.01)
    assert committed / 40_000 == pytest.approx(told.tokens_per_loop, rel=0.01)
