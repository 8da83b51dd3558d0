"""A record's costs, prediction, account and verdict, by hand from their definitions."""

import msgspec
import pytest
from recorded import COSTS, costed_record, lane_events, record_of, run_record

from app.appraisal.appraise import appraise, step_costs
from app.appraisal.findings import findings
from app.appraisal.time_split import time_split
from app.appraisal.waits import waits
from app.run.events import PassesCosted, RunEnded


def answers(record):
    return {one.label: one.value for one in findings(record)}


def test_costs_of_a_record_are_those_measured_and_what_its_rounds_took_besides():
    steps = step_costs([costed_record()], costed_record().costs)
    assert steps.passes == COSTS.seconds
    assert steps.draft_step == 0.15
    # A loop: 0.1 of guessing outside of the draft model, 0.1 of the rule, 0.05 of the rest.
    assert steps.overhead == pytest.approx(0.25)
    assert steps.baseline_overhead == pytest.approx(0.25)
    assert steps.idle == 0.0
    assert step_costs([run_record()], None) is None


@pytest.mark.parametrize("source", ["cascade", "early-exit", "slem"])
def test_a_guess_that_need_not_be_one_pass_costs_what_the_passes_took_here(source):
    # Four guesses a loop in 0.2 s of passes, whatever a pass of one row costs.
    record = costed_record()
    rounds = record.lanes[0].repetitions[0].rounds
    for place, round_ in enumerate(rounds):
        kept = tuple(
            msgspec.structs.replace(token, source=source) if token.source else token
            for token in round_.committed
        )
        phases = msgspec.structs.replace(round_.phases, draft_calls=0.2)
        rounds[place] = msgspec.structs.replace(round_, committed=kept, phases=phases)
    assert step_costs([record], record.costs).draft_step == pytest.approx(0.2 / 4)


def test_the_account_of_rounds_that_cost_what_was_measured_is_the_speedup():
    found = appraise(costed_record())
    # Eight loops of 4 × 0.15 + 0.9 + 0.25 = 1.75 s brought 24 tokens of 1 s.
    assert found.account.speculative_seconds == pytest.approx(14.0)
    assert found.account.baseline_seconds == pytest.approx(24.0)
    assert found.account.speedup == pytest.approx(24 / 14)
    assert found.unexplained == pytest.approx(0.0)
    assert found.adds_up


def test_a_planted_slowdown_does_not_add_up():
    record = costed_record()
    rounds = record.lanes[0].repetitions[0].rounds
    for place, round_ in enumerate(rounds):
        slow = msgspec.structs.replace(round_.phases, verify=0.9 * 1.6)
        rounds[place] = msgspec.structs.replace(round_, phases=slow)
    found = appraise(record)
    # 0.54 s more a loop of 1.75.
    assert found.unexplained == pytest.approx(0.54 / 1.75)
    assert not found.adds_up
    assert "does not add up (31 % longer)" in answers(record)["Accounted speed-up"]


def test_the_prediction_by_hand():
    # Two of three tested guesses were kept: E = 1 + a + a² + a³ + a⁴ for a = 2/3, loops of 1.75 s.
    expected = appraise(costed_record()).prediction
    tokens = sum((2 / 3) ** n for n in range(5))
    assert expected.tokens_per_loop == pytest.approx(tokens)
    assert expected.speedup == pytest.approx(tokens / 1.75)
    by_length = {
        length: sum((2 / 3) ** n for n in range(length + 1))
        / (0.15 * length + COSTS.seconds[length + 1] + 0.25)
        for length in range(1, 5)
    }
    assert expected.best_draft_length == max(by_length, key=by_length.get) == 2
    # Where 1 + a + a² + a³ + a⁴ is 1.75.
    assert sum(expected.break_even**n for n in range(5)) == pytest.approx(1.75)


def test_loops_without_a_draft_are_part_of_the_prediction():
    record = costed_record()
    record.lanes[0].repetitions[0].rounds += record.lanes[1].repetitions[0].rounds[:8]
    steps = step_costs([record], record.costs)
    assert steps.idle == 0.5
    assert "50 % of loops with a draft" in answers(record)["Predicted speed-up"]
    # Half the loops bring E tokens in 1.75 s, half bring one in 0.75 + 0.25.
    tokens = sum((2 / 3) ** n for n in range(5))
    assert appraise(record).prediction.speedup == pytest.approx((tokens + 1) / (1.75 + 1.0))


def test_the_verdict_of_pairs_and_of_one():
    assert appraise(costed_record()).verdict.text == (
        "pays: 1.71× (one pair, no spread), predicted best draft length 2, not tried"
    )
    # Odd repetitions: 1.3 × 1.6 + 0.15 = 2.23 s a loop, 24/17.84 = 1.35×.
    noisy = costed_record(slower=1.3, repetitions=5)
    # They lie 0.37 of 1.71 apart, 21 %: noisy.
    assert appraise(noisy).verdict.text == (
        "pays: 1.71× (1.35–1.71), predicted best draft length 2, not tried, but the run was "
        "disturbed (noisy): measure again on a quiet machine"
    )


def test_a_run_that_was_stopped_soon_has_no_verdict():
    assert appraise(costed_record(loops=7)).verdict.outcome == "pays"  # 21 tokens
    short = appraise(costed_record(loops=6)).verdict
    assert short.outcome == "unknown"
    assert short.text == "too short to say: 18 tokens were timed, and a verdict needs 20"
    for lane in (0, 1):
        record = costed_record()
        record.lanes[lane].repetitions[:] = costed_record(loops=5).lanes[lane].repetitions
        assert appraise(record).verdict.text.startswith("too short to say: 15 tokens")


def test_tokens_of_several_pairs_are_counted_together():
    assert appraise(costed_record(loops=3, repetitions=3)).verdict.outcome == "pays"  # 27 tokens


def test_a_dear_pass_is_named_as_the_reason():
    # Loops of 6.1 s for three tokens of a second.
    record = costed_record()
    rounds = record.lanes[0].repetitions[0].rounds
    phases = msgspec.structs.replace(rounds[0].phases, verify=5.25)
    rounds[:] = [msgspec.structs.replace(round_, phases=phases) for round_ in rounds]
    dear = msgspec.structs.replace(COSTS, seconds={**COSTS.seconds, 5: 5.25})
    record.apply(PassesCosted("r", dear))
    assert appraise(record).verdict.text.startswith(
        "does not pay here: the verify pass costs 7.00 single steps"
    )
    assert answers(record)["Break-even acceptance"] == "none: a draft kept whole would not pay"


def test_findings_say_what_every_number_is():
    found = answers(costed_record())
    assert found["Verify pass of 5 rows"] == "1.20 single steps (900.00 ms)"
    assert found["Single step"] == "750.00 ms"
    assert found["Draft step"] == "0.20 single steps (150.00 ms)"
    assert found["Own work of a loop"] == "250.00 ms; baseline 250.00 ms"
    assert found["Break-even acceptance"].endswith("(here 0.67)")
    assert found["Accounted speed-up"].startswith("1.71×; adds up")
    assert all(one.definition.endswith(".") for one in findings(costed_record()))


def test_a_pass_of_one_row_is_one_row():
    record = costed_record()
    record.settings = msgspec.structs.replace(record.settings, draft_length=0)
    assert answers(record)["Verify pass of 1 row"] == "1.00 single steps (750.00 ms)"


def test_a_run_without_costs_says_so_and_one_without_guesses_has_no_prediction():
    assert "not measured" in answers(run_record())["Cost of passes"]
    lanes = [*lane_events("speculative", [[2], [3]]), *lane_events("baseline", [[2], [3]])]
    plain = record_of(*lanes, PassesCosted("r", COSTS), RunEnded("r", "finished"))
    assert appraise(plain).prediction is None
    assert "no guess was tested" in answers(plain)["Prediction"]
    assert appraise(record_of()).verdict.outcome == "unknown"


def test_a_width_that_was_not_measured_leaves_gaps_not_errors():
    record = costed_record()
    narrow = msgspec.structs.replace(COSTS, seconds={1: 0.75, 2: 0.8})
    record.apply(PassesCosted("r", narrow))
    found = answers(record)
    assert found["Verify pass of 5 rows"] == "n/a"
    assert found["Accounted speed-up"] == "n/a"


def test_the_time_of_a_loop_adds_up_by_lane():
    rows = {row.label: row.milliseconds for row in time_split(costed_record())}
    assert rows["guessing"] == pytest.approx((700.0, 0.0))
    assert rows["the target's passes"] == pytest.approx((900.0, 750.0))
    assert rows["sampling and the rule"] == pytest.approx((100.0, 125.0))
    whole = rows.pop("a whole loop")
    assert whole == pytest.approx((1750.0, 1000.0))
    assert [sum(lane) for lane in zip(*rows.values(), strict=True)] == pytest.approx(whole)
    assert time_split(record_of())[0].milliseconds == ()


def test_waits_by_lane():
    # Three tokens appear at once after 1.75 s; a third of it each, amortised.
    rows = {(row.lane, row.label): row.milliseconds for row in waits(costed_record())}
    assert rows["speculative", "chunk gap"] == pytest.approx((1750.0,) * 3)
    assert rows["speculative", "time a token"] == pytest.approx((1750.0 / 3,) * 3)
    assert rows["baseline", "time a token"] == pytest.approx((1000.0,) * 3)
    mixed = record_of(*lane_events("speculative", [[2]]), RunEnded("r", "finished"))
    assert waits(mixed)[0].seconds.p95 == 1.0
    assert waits(record_of(*list(lane_events("speculative", []))))[0].milliseconds == (None,) * 3
