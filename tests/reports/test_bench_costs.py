"""What the ways of a bench cost, each by its own measurement: accounts, predictions, tables."""

import csv
import io
import json

import pytest
from msgspec.structs import replace
from recorded import lane_events, record_of, run_record

from app.elsewhere.programs import PROGRAMS, recipes
from app.reports.bench_report import BENCH_FORMATS
from app.reports.bench_summary import summarise_bench
from app.reports.bench_tables import bench_tables
from app.run.cost import MethodCosts, PassCosts
from app.run.events import (
    At,
    FirstToken,
    LaneEnded,
    LaneStarted,
    Phases,
    Round,
    RoundCommitted,
    RunEnded,
    Token,
)

TREE = {"nodes": 9, "breadth": 3}


def costs(seconds, draft=None, step=None):
    return MethodCosts(PassCosts("m", "cpu", "fp32", "sdpa", 256, seconds, 9, draft, step))


KNOWN = {
    "ngram": costs({1: 1.0, 2: 1.1, 3: 1.2}),
    "head": costs({1: 1.0, 2: 1.1, 3: 1.2}, "a head", 0.1),
    "head-tree": costs({1: 1.0, 4: 1.5, 10: 2.0}, "a head", 0.3),
    "early-exit": costs({1: 1.0, 2: 1.1, 3: 1.2}, "the first layers", 0.5),
    "mtp": MethodCosts(None, "speculation is off: the state cannot be rewound"),
}


def run(method, *, source="", nodes=None, options=None, calls=0.0):
    """Two loops that each kept one of two guesses and put the target's own behind it, of `nodes`
    rows beside the text's last token, in a second each, of which the models took `calls` for
    guessing; beside them single tokens of a second.
    """
    at = At("r", "speculative")
    kept, own = Token(3, "<3>", "accepted", source or method), Token(4, "<4>", "corrected")
    thrown = (Token(8, "<8>", "rejected", source or method),)
    phases = Phases(draft=calls, verify=1.0 - calls, draft_calls=calls)
    asked = {"method": method, "draft_length": 2, "method_options": options or {}}
    fast = [LaneStarted(at), FirstToken(at, Token(1, "<1>", "first"), 0.5)]
    for index in range(2):
        made = Round(index, 2, "draft length", (kept, own), thrown, phases, nodes=nodes)
        fast.append(RoundCommitted(at, made))
    slow = lane_events("baseline", [[n] for n in range(2, 6)])
    return record_of(*fast, LaneEnded(at, "length"), *slow, RunEnded("r", "finished"), **asked)


def way_of(record, known=KNOWN):
    return summarise_bench([("p", "a", record)], known).best


def rows_of(found, part):
    text = BENCH_FORMATS[".csv"](found)[part].removeprefix("\ufeff")
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize(
    ("method", "made", "account", "step", "whole"),
    [
        # Four tokens of 1 s beside two passes of 3 rows.
        ("ngram", {}, 4 / (2 * 1.2), 0.0, 1.2),
        # The same passes, and what the head took to guess.
        ("head", {"calls": 0.2}, 4 / (2 * (1.2 + 0.2)), 0.1, 1.2),
        # Passes of 9 guesses and one row more; a step is a level.
        (
            "head-tree",
            {"calls": 0.6, "nodes": 9, "options": TREE},
            4 / (2 * (2.0 + 0.6)),
            0.3,
            2.0,
        ),
        # The layers that guessed took 0.4 s for two guesses in these runs.
        ("early-exit", {"calls": 0.4}, 4 / (2 * (1.2 + 0.4)), 0.2, 1.2),
    ],
)
def test_every_way_is_reckoned_by_the_costs_of_its_own_method(method, made, account, step, whole):
    way = way_of(run(method, **made))
    assert way.account == pytest.approx(account)
    # One of two tested guesses was kept: 1 + 1/2 + 1/4 tokens a loop of two steps and a pass.
    assert way.prediction == pytest.approx(1.75 / (2 * step + whole))
    assert way.missing == ""
    assert way.cost.guess == pytest.approx(step)
    assert (way.cost.draft, way.cost.draft_step) == (
        KNOWN[method].costs.draft, KNOWN[method].costs.draft_step,
    )  # fmt: skip
    assert way.cost.seconds[way.cost.whole] == whole


def test_a_guess_that_was_copied_costs_no_step():
    way = way_of(run("ngram-else-head", source="ngram"), {"ngram-else-head": KNOWN["head"]})
    assert (way.cost.draft_step, way.cost.guess) == (0.1, 0.0)
    assert way.prediction == pytest.approx(1.75 / 1.2)


def test_what_is_not_known_is_missing_with_its_reason():
    refused = way_of(run("mtp"))
    assert (refused.account, refused.prediction, refused.cost) == (None, None, None)
    assert refused.missing == "speculation is off: the state cannot be rewound"
    assert way_of(run("cascade")).missing == "the cost of its passes was not measured"
    # A tree of five guesses, where passes of 4 and 10 rows were measured.
    odd = way_of(run("head-tree", nodes=5, options=TREE))
    assert (odd.account, odd.missing) == (None, "passes of 6 rows were not measured")
    none = record_of(
        *lane_events("speculative", [[2], [3]]),
        *lane_events("baseline", [[2], [3]]),
        RunEnded("r", "finished"),
        draft_length=2,
    )
    plain = way_of(none)
    assert (plain.prediction, plain.missing) == (None, "no guess was tested")
    assert plain.account == pytest.approx(1.0)
    (table, *_) = bench_tables(summarise_bench([("p", "a", run("mtp"))], KNOWN))
    assert "is n/a: speculation is off: the state cannot be rewound." in table.note


def mixed():
    """A bench of four methods; costs of one are not known."""
    tree = run("head-tree", calls=0.6, nodes=9, options=TREE)
    runs = [run("ngram"), run("head", calls=0.2), tree, run("mtp")]
    return summarise_bench([("p", "a", one) for one in runs], KNOWN)


def test_tables_tell_of_each_way_what_it_costs():
    tables = {one.caption: one for one in bench_tables(mixed())}
    passes = tables["Cost of a pass"]
    assert passes.head == ("Pass of the target, ms", "ngram, head", "head-tree")
    assert passes.rows == (
        ("1 row", "1000.00", "1000.00"),
        ("2 rows", "1100.00", "n/a"),
        ("3 rows", "1200.00", "n/a"),
        ("4 rows", "n/a", "1500.00"),
        ("10 rows", "n/a", "2000.00"),
    )
    assert [row[1:] for row in tables["Cost of a draft"].rows] == [
        ("no model", "n/a", "0.00", "3", "1200.00", "1.20"),
        ("a head", "100.00", "100.00", "3", "1200.00", "1.20"),
        ("a head", "300.00", "300.00", "10", "2000.00", "2.00"),
        ("n/a",) * 6,
    ]


def test_sheets_tell_costs_in_the_rows_of_all_categories():
    head, *cells = rows_of(mixed(), ".csv")
    rows = [dict(zip(head, row, strict=True)) for row in cells]
    told = [row for row in rows if row["category"] == "all together"]
    assert [row["draft_step_s"] for row in told] == ["", "0.1", "0.3", ""]
    assert [row["whole_rows"] for row in told] == ["3", "3", "10", ""]
    assert float(told[2]["account"]) == pytest.approx(4 / 5.2)
    assert told[3]["missing"] == "speculation is off: the state cannot be rewound"
    assert all(row["account"] == "" for row in rows if row["category"] == "a")
    facts = rows_of(mixed(), ".run.csv")
    assert ["cost.head-tree, draft length 2.seconds", '{"1": 1.0, "4": 1.5, "10": 2.0}'] in facts
    assert ["cost.mtp, draft length 2", "null"] in facts


def test_a_bench_tells_the_set_up_of_its_best_way_for_other_programs():
    slow = run_record(method="ngram", draft_length=3)
    fast = run_record(method="ngram", draft_length=7)
    rounds = fast.lanes[0].repetitions[0].rounds
    rounds[:] = [replace(one, phases=Phases(verify=one.phases.total / 10)) for one in rounds]
    found = summarise_bench([("p", "a", slow), ("p", "a", fast)])
    assert found.best.draft_length == 7
    assert found.elsewhere == recipes(fast) != recipes(slow)
    told = json.loads(found.json())["elsewhere"]
    assert [one["program"] for one in told] == list(PROGRAMS)
    for suffix in (".md", ".html"):
        page = BENCH_FORMATS[suffix](found)[suffix]
        assert page.count("Use elsewhere") == 1
        assert "The set-up of the best way (ngram, draft length 7)" in page
        assert "prompt_lookup_num_tokens=7" in page
        assert "prompt_lookup_num_tokens=3" not in page
    facts = rows_of(found, ".run.csv")
    assert ["elsewhere.way", "ngram, draft length 7"] in facts
    assert ["elsewhere.vLLM", told[0]["text"]] in facts
