import pytest

from app.theory.costs import StepCosts
from app.theory.verdict import Measured, verdict

CHEAP = StepCosts({width: 1.0 + 0.05 * (width - 1) for width in range(1, 10)}, draft_step=0.05)


def text(measured, length, costs=None, acceptance=None, **more):
    return verdict(measured, length, costs=costs, acceptance=acceptance, **more).text


def test_it_pays():
    # α = .7: the gain of 4 guesses is 2.7731/1.4, of 3 2.533/1.3, of 5 2.9412/1.5.
    found = verdict(Measured(1.62, 1.55, 1.70), 4, costs=CHEAP, acceptance=0.7)
    assert found.outcome == "pays"
    assert found.text == "pays: 1.62× (1.55–1.70), best draft length 4"


def test_a_sweep_says_what_is_best():
    assert text(Measured(1.62, 1.55, 1.70), 4, CHEAP, 0.7, best=2).endswith("best draft length 2")


def test_a_best_length_that_was_not_run_is_a_prediction():
    # Four guesses are best, as above.
    told = text(Measured(1.62, 1.55, 1.70), 2, CHEAP, 0.7)
    assert told == "pays: 1.62× (1.55–1.70), predicted best draft length 4, not tried"
    told = text(Measured(1.62, 1.55, 1.70), 2, CHEAP, 0.7, tried={2, 4})
    assert told == "pays: 1.62× (1.55–1.70), predicted best draft length 4"


def test_a_doubt_ends_whatever_is_said():
    for low, high, said in (
        (1.5, 1.7, "pays: 1.60× (1.50–1.70)"),
        (0.9, 1.7, "too close to call (0.90–1.70)"),
        (0.5, 0.7, "does not pay here: 1.60× (0.50–0.70)"),
    ):
        found = verdict(Measured(1.6, low, high), 4, doubt="it rained")
        assert (found.text, found.doubtful) == (f"{said}, but it rained", True)
    assert not verdict(Measured(1.6, 1.5, 1.7), 4).doubtful
    assert not verdict(Measured(1.6, tokens=3), 4, doubt="it rained").doubtful


def test_costs_are_told_in_passes_of_one_row():
    # A token of the baseline takes 1.25 s, but a pass of one row 1 s.
    costs = StepCosts({1: 1.0, 2: 1.05, 5: 1.1}, draft_step=0.75, baseline_overhead=0.25)
    assert text(Measured(0.7, 0.68, 0.72), 4, costs, 0.4) == (
        "does not pay here: the draft costs 0.75 single steps a token"
    )


def test_it_pays_and_nothing_more_is_known():
    assert text(Measured(1.62, 1.55, 1.70), 4) == "pays: 1.62× (1.55–1.70)"
    assert text(Measured(1.62), 4) == "pays: 1.62× (one pair, no spread)"


def test_a_dear_pass_is_named():
    costs = StepCosts({1: 1.0, 2: 1.9, 3: 1.95, 4: 2.0, 5: 2.1}, draft_step=0.05)
    found = verdict(Measured(0.85, 0.82, 0.88), 4, costs=costs, acceptance=0.5)
    assert found.outcome == "does not pay"
    assert found.text == "does not pay here: the verify pass costs 2.10 single steps"


def test_a_dear_draft_is_named():
    costs = StepCosts({1: 1.0, 2: 1.05, 5: 1.1}, draft_step=0.6)
    assert text(Measured(0.7, 0.68, 0.72), 4, costs, 0.55) == (
        "does not pay here: the draft costs 0.60 single steps a token"
    )


def test_dear_bookkeeping_is_named():
    costs = StepCosts({1: 1.0, 5: 1.1}, draft_step=0.02, overhead=1.4)
    assert text(Measured(0.8, 0.78, 0.82), 4, costs, 0.5) == (
        "does not pay here: a loop's own work costs 1.40 single steps"
    )


def test_too_low_an_acceptance_is_named():
    # One guess at 1.45 single steps a round: 1 + α = 1.45.
    costs = StepCosts({1: 1.0, 2: 1.2}, draft_step=0.25)
    assert text(Measured(0.9, 0.88, 0.92), 1, costs, 0.15) == (
        "does not pay here: acceptance 0.15 is below the 0.45 that would break even"
    )


def test_a_round_that_could_never_pay_names_its_dearest_part():
    costs = StepCosts({1: 1.0, 2: 2.5})
    assert text(Measured(0.5, 0.4, 0.6), 1, costs, 0.1) == (
        "does not pay here: the verify pass costs 2.50 single steps"
    )


def test_a_round_that_could_never_pay_names_a_part_that_alone_does_not_decide():
    # 0.7 + 1.4 single steps for two tokens at most; 1.4 would still be too much for 1.1 tokens.
    costs = StepCosts({1: 1.0, 2: 1.4}, draft_step=0.7)
    assert text(Measured(0.5, 0.4, 0.6), 1, costs, 0.1) == (
        "does not pay here: the draft costs 0.70 single steps a token"
    )


def test_a_small_cost_is_no_reason():
    # 1.05 tokens for 1.1 single steps: it is not the tenth of a step that is amiss.
    costs = StepCosts({1: 1.0, 2: 1.1})
    assert text(Measured(0.95, 0.93, 0.97), 1, costs, 0.05) == (
        "does not pay here: acceptance 0.05 is below the 0.10 that would break even"
    )


def test_another_length_that_would_hardly_pay_is_not_offered():
    # One guess: 1.5/1.45.
    costs = StepCosts({1: 1.0, 2: 1.45, 9: 4.0})
    assert text(Measured(0.5, 0.4, 0.6), 8, costs, 0.5) == (
        "does not pay here: the verify pass costs 4.00 single steps"
    )


def test_another_length_that_should_pay_is_offered():
    # One guess: 1.7/1.2; eight guesses cost 8·.1 + 3.
    costs = StepCosts({1: 1.0, 2: 1.1, 9: 3.0}, draft_step=0.1)
    assert text(Measured(0.84, 0.80, 0.88), 8, costs, 0.7) == (
        "does not pay here: the verify pass costs 3.00 single steps; "
        "a draft length of 1 should pay, 1.42× predicted"
    )


def test_a_loss_that_the_costs_do_not_explain_is_said_to_be_one():
    assert text(Measured(0.8, 0.75, 0.85), 4, CHEAP, 0.7) == (
        "does not pay here: 0.80× (0.75–0.85), where the cost of its passes promises 1.98×"
    )


def test_a_loss_without_costs_is_still_told():
    assert text(Measured(0.8, 0.75, 0.85), 4) == "does not pay here: 0.80× (0.75–0.85)"
    assert text(Measured(0.8), 4) == "does not pay here: 0.80× (one pair, no spread)"


def test_what_holds_one_is_too_close_to_call():
    found = verdict(Measured(1.0, 0.97, 1.04), 4)
    assert found.outcome == "too close to call"
    assert found.text == "too close to call (0.97–1.04)"


def test_one_pair_near_one_is_too_close_to_call():
    assert text(Measured(1.03), 4) == "too close to call (1.03×, one pair, no spread)"


def test_a_text_that_is_too_short_says_nothing():
    assert verdict(Measured(2.0, tokens=20), 4).outcome == "pays"
    found = verdict(Measured(2.0, 1.9, 2.1, tokens=19), 4, costs=CHEAP, acceptance=0.7)
    assert found.outcome == "unknown"
    assert found.text == "too short to say: 19 tokens were timed, and a verdict needs 20"


def test_nothing_measured_has_no_verdict():
    assert verdict(None, 4).outcome == "unknown"


@pytest.mark.parametrize(
    ("measured", "outcome"),
    [
        (Measured(1.2, 1.0, 1.4), "too close to call"),
        (Measured(1.2, 1.01, 1.4), "pays"),
        (Measured(0.9, 0.8, 0.99), "does not pay"),
        (Measured(1.06), "pays"),
        (Measured(0.95), "does not pay"),
    ],
)
def test_where_the_lines_are(measured, outcome):
    assert measured.outcome == outcome
