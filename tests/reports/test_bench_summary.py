"""What a bench comes to, against sums done by hand."""

import csv
import io
import json

import pytest
from recorded import lane_events, record_of, started

from app.reports.bench_report import BENCH_FORMATS
from app.reports.bench_summary import summarise_bench
from app.run.cost import PassCosts
from app.run.events import RunEnded

COSTS = PassCosts(
    model="m",
    device="cpu",
    precision="fp32",
    attention="sdpa",
    context_bucket=256,
    seconds={1: 1.0, 2: 1.0, 3: 1.0},
    repeats=9,
)


def record(fast_seconds, slow_seconds, *, repetitions=1, draft_length=2):
    """A run whose rounds of 3 tokens took `fast_seconds`, beside one of single tokens."""
    events = [started(draft_length=draft_length)]
    for repetition in range(repetitions):
        for lane, rounds, seconds in (
            ("speculative", [[2, 3, 4], [5, 6, 7]], fast_seconds),
            ("baseline", [[n] for n in range(2, 8)], slow_seconds),
        ):
            events += lane_events(lane, rounds, repetition=repetition, seconds=seconds)
    return record_of(*events[1:], RunEnded("r", "finished"), draft_length=draft_length)


def test_figures_are_sums_over_sums():
    # a: 6 tokens in 2 x 1 s beside 6 x 1 s; b: 2 x 3 s beside 6 x 1 s.
    runs = [("p1", "a", record(1.0, 1.0)), ("p2", "b", record(3.0, 1.0))]
    found = summarise_bench(runs)
    assert found.categories["a"].speculative_tokens_per_second == pytest.approx(3.0)
    assert found.categories["a"].baseline_tokens_per_second == pytest.approx(1.0)
    assert found.categories["a"].decode_speedup.value == pytest.approx(3.0)
    assert found.categories["b"].decode_speedup.value == pytest.approx(1.0)
    # Together 12 tokens in 8 s beside 12 tokens in 12 s.
    assert found.overall.decode_speedup.value == pytest.approx(1.5)
    assert found.overall.tokens_per_loop == pytest.approx(3.0)
    assert found.overall.acceptance_rate == 1.0
    assert found.overall.prompts == 2


def test_one_pair_has_no_interval_and_several_have_one():
    one = summarise_bench([("p", "a", record(1.0, 1.0))])
    assert (one.overall.decode_speedup.low, one.overall.decode_speedup.high) == (None, None)
    many = summarise_bench(
        [(f"p{i}", "a", record(1.0 + 0.1 * i, 1.0, repetitions=3)) for i in range(5)]
    )
    speedup = many.overall.decode_speedup
    assert speedup.low < speedup.value < speedup.high


def test_the_best_way_stands_above_and_the_others_beside():
    runs = [
        ("p", "a", record(3.0, 1.0, draft_length=2)),
        ("p", "a", record(1.0, 1.0, draft_length=3)),
    ]
    found = summarise_bench(runs, COSTS)
    assert [way.draft_length for way in found.ways] == [2, 3]
    assert found.best.draft_length == 3
    assert found.verdict.startswith("pays: 3.00×")


def test_the_account_is_what_the_passes_should_have_cost():
    # Two rounds of 3 rows at 1 s each for 6 tokens at 1 s each: 3.0, whatever the run took.
    found = summarise_bench([("p", "a", record(2.0, 1.0))], COSTS)
    assert found.best.account == pytest.approx(3.0)
    assert found.overall.decode_speedup.value == pytest.approx(1.5)
    assert found.cost.seconds == {1: 1.0, 2: 1.0, 3: 1.0}


def test_json_is_strict_and_has_the_promised_keys():
    def refuse(name):
        raise AssertionError(name)

    found = summarise_bench([("p", "a", record(1.0, 1.0))], COSTS)
    read = json.loads(found.json(), parse_constant=refuse)
    assert {"categories", "overall", "cost", "verdict"} <= set(read)
    assert set(read["categories"]["a"]) >= {
        "tokens_per_loop",
        "acceptance_rate",
        "conditional_acceptance",
        "decode_speedup",
    }
    assert set(read["cost"]) == {"seconds", "draft_step"}
    assert read["cost"]["seconds"]["1"] == 1.0


def test_nothing_measured_is_nothing():
    assert summarise_bench([]) is None


def test_the_ratio_of_means_weighs_prompts_alike():
    # Speeds 3 and 1 tokens/s beside 1 and 1: means 2 and 1, though the sums give 1.5.
    found = summarise_bench([("p1", "a", record(1.0, 1.0)), ("p2", "a", record(3.0, 1.0))])
    assert found.overall.speedup_of_means.value == pytest.approx(2.0)
    assert found.overall.decode_speedup.value == pytest.approx(1.5)


def test_the_turns_of_a_prompt_are_one_of_its_means():
    # p1 wrote 12 tokens in 2 + 6 s over its turns: 1.5 a second; p2 6 in 2 s: 3 a second.
    runs = [("p1", "a", record(1.0, 1.0)), ("p1", "a", record(3.0, 1.0))]
    found = summarise_bench([*runs, ("p2", "a", record(1.0, 1.0))])
    assert found.overall.speedup_of_means.value == pytest.approx((1.5 + 3.0) / 2)
    assert (found.overall.prompts, found.overall.turns) == (2, 3)


def test_request_speedup_counts_the_prompt_pass():
    # 0.5 s to the first token in both lanes, then 2 s beside 6 s.
    found = summarise_bench([("p", "a", record(1.0, 1.0))])
    assert found.overall.request_speedup.value == pytest.approx(6.5 / 2.5)
    # The turns of a prompt are one pair, and one pair has no interval.
    turns = summarise_bench([("p", "a", record(1.0, 1.0)), ("p", "a", record(3.0, 1.0))])
    assert turns.overall.request_speedup.value == pytest.approx(13 / 9)
    assert turns.overall.request_speedup.low is None


def test_waiting_is_told_for_both_lanes():
    found = summarise_bench([("p", "a", record(1.5, 1.0))]).overall
    assert found.speculative_chunk_gaps.p95 == pytest.approx(1.5)
    assert found.speculative_seconds_per_token.p50 == pytest.approx(0.5)
    assert found.baseline_chunk_gaps.p50 == found.baseline_seconds_per_token.p90 == 1.0


def test_reports_are_safe_to_open():
    hostile = ["=1+1|x", "<script>alert(1)</script>", "[bold]\x1b[31m"]
    runs = [("p", name, record(1.0, 1.0)) for name in hostile]
    found = summarise_bench(runs, COSTS, notes=["<b>note</b>"])
    page = BENCH_FORMATS[".html"](found)
    assert "<script>" not in page
    assert "&lt;b&gt;note" in page
    assert "\x1b" not in page + BENCH_FORMATS[".md"](found)
    rows = list(csv.reader(io.StringIO(BENCH_FORMATS[".csv"](found))))
    assert rows[1][2] == "'=1+1|x"
    assert len({len(row) for row in rows}) == 1
