"""A run whose guesses branch, from its settings to its reports."""

import csv
import io
from functools import partialmethod

import msgspec
import pytest
import talking

from app.appraisal.appraise import appraise
from app.library.catalogue import Catalogue
from app.library.entries import PairEntry
from app.models.head_session import HeadSession
from app.models.proofs import Proof
from app.models.session import Session
from app.reports.csv_report import csv_parts
from app.run.events import At, RunStarted
from app.run.figures import FIGURES, OF_TREES, figures_of
from app.run.metrics import counts, same_text
from app.run.preparation import Prepare, preparation
from app.run.problems import Problem
from app.run.record import RunRecord
from app.run.settings import Sampling
from app.run.tree_shape import TreeShape
from app.studies.head_steps import time_steps
from app.studies.warming import warm_up_lanes
from app.studies.workbench import Workbench, _lane_maker, check_settings

TREE = {"method": "head-tree", "method_options": {"nodes": 9, "breadth": 3}, "draft_length": 3}


def test_a_tree_has_no_more_guesses_than_its_levels_can_hold():
    shape = TreeShape(nodes=30, breadth=3)
    assert [shape.nodes_at(levels) for levels in range(6)] == [0, 3, 12, 21, 30, 30]
    # What a head reads to make the last: three guesses of each level but the last.
    assert [TreeShape(nodes=4, breadth=3).room(levels) for levels in range(5)] == [0, 3, 4, 6, 9]


def test_a_run_writes_the_baselines_text_and_its_figures_add_up(run_tiny):
    record = run_tiny(**TREE, detail="full")
    assert record.outcome == "finished", record.message
    assert same_text(record).same
    (fast,) = record.repetitions("speculative")
    tally = counts(fast)
    assert tally.accepted > 0
    assert max(round_.width for round_ in fast.rounds) == 10
    # Passes are costed at the widths that trees of one level, of two and so on have.
    assert sorted(record.costs.seconds) == [1, 4, 10]
    found = appraise(record)
    assert found.prediction.tokens_per_loop == pytest.approx(
        sum(tally.conditional_acceptance**kept for kept in range(4)) * (1 - found.steps.idle)
        + found.steps.idle
    )
    assert found.account is not None
    passes = sum(record.costs.seconds[round_.width] for round_ in fast.rounds)
    calls = sum(round_.phases.draft_calls for round_ in fast.rounds)
    own = found.steps.overhead * len(fast.rounds)
    assert found.account.speculative_seconds == pytest.approx(passes + calls + own)
    assert FIGURES["verify_cost"].value(record) == pytest.approx(
        record.costs.seconds[10] / record.costs.seconds[1]
    )
    drafting = [round_ for round_ in fast.rounds if round_.drafted]
    mean = sum(round_.nodes for round_ in drafting) / len(drafting)
    assert FIGURES["nodes_per_loop"].value(record) == pytest.approx(mean)


def test_notes_tell_how_far_apart_the_rows_of_branches_were(run_tiny):
    told = "guesses that branch tried: each row as in its branch alone, but for rounding ("
    assert any(told in note for note in run_tiny(**TREE).notes)
    assert not any("branch" in note for note in run_tiny(method="head", draft_length=3).notes)


def test_only_the_lane_that_guesses_has_room_for_trees(tiny_bench, tiny):
    settings = tiny(**TREE)
    pair = tiny_bench.loaded(preparation(settings), report=lambda _: None, pause=lambda: None)
    maker = _lane_maker(pair, settings)
    rooms = [
        maker.open_sessions(At("r", lane))._sessions["target"].capacity - maker.capacity
        for lane in ("baseline", "speculative")
    ]
    assert rooms == [0, 9]


@pytest.mark.parametrize("breadth", [0, 1, 3, 32])
def test_a_level_of_any_breadth_is_timed(tiny_bench, tiny, breadth):
    settings = tiny(**TREE)
    pair = tiny_bench.loaded(preparation(settings), report=lambda _: None, pause=lambda: None)
    assert time_steps(pair.head, context=256, pause=lambda: None, breadth=breadth) > 0


def test_trees_are_read_before_anything_is_timed(tiny_bench, tiny, monkeypatch):
    settings = tiny(**TREE)
    pair = tiny_bench.loaded(preparation(settings), report=lambda _: None, pause=lambda: None)
    read = []

    def watched(session, text, block=None, *, rows, upto=None, kind, sound):
        branches = block is not None and block.tree is not None
        read.append((kind, branches, len(block) if block is not None else 0))
        return sound(session, text, block, rows=rows, upto=upto)

    for kind, owner in (("target", Session), ("head", HeadSession)):
        method = partialmethod(watched, kind=kind, sound=owner.read)
        monkeypatch.setattr(owner, "read", method)
    warm_up_lanes(_lane_maker(pair, settings), report=lambda _: None, pause=lambda: None)
    assert ("target", True, 9) in read  # as many as a tree of three levels has at most
    assert ("head", True, 3) in read


def test_figures_of_trees_are_shown_of_trees_only(run_tiny):
    tree, chain = run_tiny(**TREE), run_tiny(method="head", draft_length=3)
    assert {one.name for one in figures_of(tree)} - {one.name for one in figures_of(chain)} == {
        *OF_TREES
    }
    assert all(round_.nodes is None for round_ in chain.repetitions("speculative")[0].rounds)


def test_a_record_of_trees_is_read_again_and_its_tables_tell_of_them(run_tiny):
    record = run_tiny(**TREE)
    assert msgspec.json.decode(msgspec.json.encode(record), type=RunRecord) == record
    rounds = record.repetitions("speculative")[0].rounds
    parts = csv_parts(record)
    rows = list(csv.DictReader(io.StringIO(parts[".rounds.csv"].lstrip("\ufeff"))))
    told = [row["nodes"] for row in rows if row["lane"] == "speculative"]
    assert told == ["" if round_.nodes is None else str(round_.nodes) for round_ in rounds]
    tokens = csv.DictReader(io.StringIO(parts[".csv"].lstrip("\ufeff")))
    decided = [row for row in tokens if row["status"] in ("accepted", "rejected")]
    assert (
        sum(int(row["tried"]) for row in decided)
        == counts(record.repetitions("speculative")[0]).tested_nodes
    )


@pytest.mark.parametrize("rule", ["block", "lenience", "typical", "fly", "ensemble", "synthetic"])
def test_a_rule_for_chains_is_refused_with_those_that_work(tiny, rule):
    asked = {**TREE, "draft_length": 8}
    with pytest.raises(Problem, match="branch") as refused:
        check_settings(tiny(**asked, rule=rule, sampling=Sampling(temperature=1.0)))
    assert "exact, coupled, sample-match, greedy" in refused.value.remedy
    check_settings(tiny(**{**asked, "method": "head", "method_options": {}}, rule=rule))


def test_a_rule_that_is_greedy_at_temperature_0_may_be_asked_for_there(tiny):
    check_settings(tiny(**TREE, rule="block"))


@pytest.mark.parametrize("policy", ["confidence", "entropy", "best"])
def test_draft_lengths_that_look_at_single_guesses_are_refused(tiny, policy):
    with pytest.raises(Problem, match="branch") as refused:
        check_settings(tiny(**TREE, draft_length_policy=policy))
    assert "fixed, heuristic" in refused.value.remedy


def test_depths_may_follow_the_heuristic(run_tiny):
    record = run_tiny(**TREE, draft_length_policy="heuristic", draft_length_options={"start": 1})
    limits = [round_.limit for round_ in record.repetitions("speculative")[0].rounds]
    assert set(limits) > {1}
    assert same_text(record).same


def test_a_target_that_cannot_read_branches_writes_alone_and_says_why(tiny_bench, tiny):
    events = []
    settings = tiny(**TREE, max_new_tokens=8)
    pair = tiny_bench.loaded(
        preparation(settings),
        report=lambda _: None,
        pause=lambda: None,
    )
    known = pair.target.trees
    pair.target.__dict__["trees"] = Proof(False, "it cannot, in this test")
    try:
        tiny_bench.run("r", settings, emit=events.append, report=lambda _: None, pause=lambda: None)
    finally:
        pair.target.__dict__["trees"] = known
    record = RunRecord.of(events)
    assert isinstance(events[0], RunStarted)
    assert any("it cannot, in this test" in note for note in record.notes)
    assert counts(record.repetitions("speculative")[0]).drafted == 0


def test_a_pair_that_opens_with_trees_says_before_a_run_that_its_target_reads_none():
    loaded = talking.pair()
    loaded.target.__dict__["trees"] = Proof(False, "its rows do not hold")
    entry = PairEntry("toy", "Toy", "target", "head-tree", head="head")
    bench = Workbench(Catalogue((), (entry,)))
    bench.loaded = lambda *args, **kwargs: loaded
    found = bench.prepare(Prepare("toy"), report=print, pause=lambda: None)
    assert "Speculation is off: its rows do not hold." in found.notes
