"""What a bench comes to, against sums done by hand."""

import csv
import io
import json

import msgspec
import pytest
from msgspec.structs import replace
from recorded import lane_events, record_of, started

from app.reports.bench_report import BENCH_FORMATS
from app.reports.bench_summary import summarise_bench
from app.reports.bench_tables import bench_tables
from app.run.cost import MethodCosts, PassCosts
from app.run.events import Environment, RunEnded
from app.run.flags import Flag
from app.run.settings import Message, RunSettings

COSTS = PassCosts(
    model="m",
    device="cpu",
    precision="fp32",
    attention="sdpa",
    context_bucket=256,
    seconds={1: 1.0, 2: 1.0, 3: 1.0},
    repeats=9,
)
KNOWN = {"ngram": MethodCosts(COSTS)}


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
    found = summarise_bench(runs, KNOWN)
    assert [way.draft_length for way in found.ways] == [2, 3]
    assert found.best.draft_length == 3
    assert found.verdict.startswith("pays: 3.00×")


def test_the_verdict_itself_says_that_half_of_its_runs_were_disturbed():
    loud = Flag("other load", "by one")
    runs = [("p1", "a", record(1.0, 1.0)), ("p2", "a", record(1.0, 1.0, draft_length=3))]
    quiet = summarise_bench(runs, KNOWN)
    disturbed = record(1.0, 1.0)
    disturbed.flags = (loud,)
    found = summarise_bench([*runs, ("p3", "a", disturbed)], KNOWN)
    tail = ", but 1 of its 2 runs were disturbed (other load): measure again on a quiet machine"
    assert "disturbed" not in quiet.verdict
    assert found.verdict.startswith("pays: 3.00×")
    assert found.verdict.endswith(tail)
    assert "disturbed" not in found.ways[1].verdict
    assert json.loads(found.json())["verdict"] == found.verdict
    assert f"**ngram, draft length 2: P{found.verdict[1:]}.**" in BENCH_FORMATS[".md"](found)[".md"]
    assert f"P{found.verdict[1:]}." in BENCH_FORMATS[".html"](found)[".html"]
    assert any(f"P{found.verdict[1:]}." in one.note for one in bench_tables(found))


def test_a_best_length_is_told_to_be_untried_unless_one_of_the_ways_was_it():
    # All guesses are kept and no pass costs more than another: the longest is best.
    runs = [("p", "a", record(1.0, 1.0, draft_length=1))]
    assert summarise_bench(runs, KNOWN).verdict.endswith(
        ", predicted best draft length 2, not tried"
    )
    runs += [("p", "a", record(1.0, 1.0, draft_length=2))]
    first, second = summarise_bench(runs, KNOWN).ways
    assert first.verdict.endswith(", predicted best draft length 2")
    assert second.verdict.endswith(", best draft length 2")


def test_the_account_is_what_the_passes_should_have_cost():
    # Two rounds of 3 rows at 1 s each for 6 tokens at 1 s each: 3.0, whatever the run took.
    found = summarise_bench([("p", "a", record(2.0, 1.0))], KNOWN)
    assert found.best.account == pytest.approx(3.0)
    assert found.overall.decode_speedup.value == pytest.approx(1.5)
    assert found.cost.seconds == {1: 1.0, 2: 1.0, 3: 1.0}


def test_json_is_strict_and_has_the_promised_keys():
    def refuse(name):
        raise AssertionError(name)

    found = summarise_bench([("p", "a", record(1.0, 1.0))], KNOWN)
    read = json.loads(found.json(), parse_constant=refuse)
    assert {"categories", "overall", "cost", "verdict"} <= set(read)
    assert set(read["categories"]["a"]) >= {
        "tokens_per_loop",
        "acceptance_rate",
        "conditional_acceptance",
        "decode_speedup",
    }
    assert set(read["cost"]) >= {"seconds", "draft", "draft_step", "guess", "whole"}
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
    found = summarise_bench(runs, KNOWN, notes=["<b>note</b>"])
    page = BENCH_FORMATS[".html"](found)[".html"]
    assert "<script>" not in page
    assert "&lt;b&gt;note" in page
    assert "\x1b" not in page + BENCH_FORMATS[".md"](found)[".md"]
    rows = rows_of(found, ".csv")
    assert rows[1][2] == "'=1+1|x"
    assert len({len(row) for row in rows}) == 1
    assert ["note", "<b>note</b>"] in rows_of(found, ".run.csv")


def rows_of(found, part):
    text = BENCH_FORMATS[".csv"](found)[part]
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"))))


def asked(prompt, *, method="ngram", earlier=(), environment=None, flags=(), notes=()):
    """A run of this prompt, made under these conditions."""
    made = record(1.0, 1.0)
    made.settings = replace(made.settings, prompt=prompt, method=method, earlier=earlier)
    made.environment = environment or made.environment
    made.flags, made.notes = flags, notes
    return made


def test_a_bench_holds_what_is_needed_to_repeat_it():
    said = (Message("user", "=1+1"), Message("assistant", "2"))
    runs = [
        ("p1", "a", asked("=1+1")),
        ("p1", "a", asked("-2", earlier=said)),
        ("p1", "a", asked("=1+1", method="draft-model")),
        ("p2", "b", asked("+3")),
    ]
    found = summarise_bench(runs)
    conditions = json.loads(found.json())["conditions"]
    settings = replace(runs[0][2].settings, prompt="", earlier=())
    assert msgspec.convert(conditions["settings"], RunSettings) == settings
    assert conditions["prompts"] == [
        {"id": "p1", "category": "a", "turns": ["=1+1", "-2"]},
        {"id": "p2", "category": "b", "turns": ["+3"]},
    ]
    facts = rows_of(found, ".run.csv")
    assert facts[0] == ["name", "value"]
    for row in (
        ["began", "2026-01-02T03:04:05+01:00"],
        ["runs", "4"],
        ["way", "ngram, draft length 2"],
        ["way", "draft-model, draft length 2"],
        ["settings.sampling.temperature", "0.0"],
        ["settings.stop_strings", "[]"],
        ["settings.device", "null"],
        ["environment.packages", '{"torch": "2"}'],
        ["target.name", "target"],
        ["draft", "null"],
        ["prompt", '{"id": "p2", "category": "b", "turns": ["+3"]}'],
    ):
        assert row in facts
    apart = {"settings.prompt", "settings.earlier", "settings.method", "settings.draft_length"}
    assert not apart & {name for name, _ in facts}
    for page in (BENCH_FORMATS[".md"](found)[".md"], BENCH_FORMATS[".html"](found)[".html"]):
        assert all(word in page for word in ("What was not held equal", "To repeat it", "torch"))


def test_a_bench_tells_of_how_many_runs_what_was_not_held_equal():
    other = Environment("0.1", "3.12", "there", "cpu", "cpu", 2, {"torch": "2"})
    seen = (Flag("other load", "by one"),), (Flag("other load", "by two"), Flag("battery"))
    runs = [
        ("p1", "a", asked("x", flags=seen[0], notes=("said",))),
        ("p2", "a", asked("y", flags=seen[1])),
        ("p3", "a", asked("z", environment=other)),
    ]
    found = summarise_bench(runs)
    facts = rows_of(found, ".run.csv")
    assert [value for name, value in facts if name == "caution"] == [
        "Something else used the device while the run went on. (2 of 3 runs)",
        "The machine ran on its battery, which may slow it. (1 of 3 runs)",
    ]
    unequal = [value for name, value in facts if name == "not held equal"]
    assert "Draft resident during baseline: no, the pair has no draft. (3 of 3 runs)" in (unequal)
    assert unequal[-1].startswith("The machine, or its versions, was not that of the first run")
    assert unequal[-1].endswith("(1 of 3 runs)")
    assert ["note", "said (1 of 3 runs)"] in facts
    assert ["environment.python", "3.11"] in facts
    assert ["environment 2.python", "3.12"] in facts
    page = BENCH_FORMATS[".md"](found)[".md"]
    assert "| Something else used the device while the run went on. | 2 of 3 |" in page


def test_a_row_says_that_no_guess_was_made():
    lanes = [*lane_events("speculative", [[2], [3]]), *lane_events("baseline", [[2], [3]])]
    alone = record_of(*lanes, RunEnded("r", "finished"), draft_length=2)
    found = summarise_bench([("p1", "a", record(1.0, 1.0)), ("p2", "b", alone)])
    (way, *_) = bench_tables(found)
    assert [row[0] for row in way.rows] == ["a", "b: no guess was made", "all together"]
    assert way.rows[1][8] == "1.00× (one pair)"
    assert "| b: no guess was made |" in BENCH_FORMATS[".md"](found)[".md"]
    assert "b: no guess was made" in BENCH_FORMATS[".html"](found)[".html"]
    other = record(1.0, 1.0, draft_length=3)
    beside = bench_tables(summarise_bench([("p2", "b", alone), ("p2", "b", other)]))[0]
    assert beside.rows[0][1:] == ("1.00× (no guess)", "3.00× (one pair)")
