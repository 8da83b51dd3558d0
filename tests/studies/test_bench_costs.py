"""A bench measures for each method what its own guesses and passes cost, on clocks of the test."""

import pytest
import talking
import torch

from app.decoding.proposers.pickings import HeadPicking
from app.library.prompts_set import Prompt
from app.models.early_exit import EarlyExit
from app.models.loaded_mtp import LoadedMtp
from app.run.problems import Cancelled, Problem
from app.run.settings import RunSettings, Sampling
from app.studies import costing, head_steps
from app.studies.bench import method_costs, plan, run_bench, to_cost
from app.studies.head_steps import StepTimes
from app.studies.passes import Timings
from app.studies.whole_times import ChainAsked
from tapes import Tape, taped

CHAIN = {width: float(width) for width in range(1, 10)}


@pytest.fixture
def priced(monkeypatch, tmp_path):
    """A pass of the target takes a second a row, one of the draft model 0.25 s; a step of early
    exit 0.5 s, of modules 0.4 s, of a head 0.1 s, and a level of its tree 0.3 s. What was measured
    is listed.
    """
    measured = []

    def passes(model, widths, **how):
        measured.append(("passes", model.name, tuple(widths)))
        price = 0.25 if "disturbed" in model.name else 1.0
        return Timings({width: price * width for width in widths}, 9)

    def steps(beside, *, context, pause, breadth=0, whole=None):
        measured.append(("steps", beside.name, context, breadth))
        if isinstance(beside, EarlyExit):
            return 0.5
        if isinstance(beside, LoadedMtp):
            return 0.4
        return 0.3 if breadth else 0.1

    monkeypatch.setattr(costing, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(costing, "time_passes", passes)
    monkeypatch.setattr(head_steps, "time_steps", steps)
    return measured


def costs_of(bench, settings):
    return method_costs(
        bench, settings, steps=StepTimes(), report=lambda _: None, pause=lambda: None
    )


def test_each_method_is_costed_once_up_to_its_longest_draft():
    ways = [("ngram", 2), ("head", 8), ("ngram", 6), ("head", 4)]
    found = to_cost(ways, RunSettings(pair="toy", prompt=""))
    assert [(one.method, one.draft_length) for one in found] == [("ngram", 6), ("head", 8)]


@pytest.mark.parametrize(
    ("method", "step"),
    [
        ("nothing", None),
        ("ngram", None),
        ("suffix", None),
        ("draft-model", 0.25),
        ("cascade", 0.25),
        ("early-exit", 0.5),
        ("head", 0.1),
        ("ngram-else-head", 0.1),
        ("mtp", 0.4),
    ],
)
def test_a_chain_costs_a_step_of_what_its_method_asks_and_a_row_a_guess(
    tiny_bench, tiny, priced, method, step
):
    found = costs_of(tiny_bench, tiny(method=method, draft_length=4))
    assert (found.costs.draft_step, found.missing) == (step, "")
    assert (found.costs.draft is None) == (step is None)
    assert found.costs.seconds == CHAIN


def test_a_tree_costs_a_level_of_the_head_and_passes_as_wide_as_its_levels_make_them(
    tiny_bench, tiny, priced
):
    found = costs_of(tiny_bench, tiny(method="head-tree", draft_length=4)).costs
    # Three guesses at the first level, nine more behind them, of which eight in all are kept.
    assert found.seconds == {1: 1.0, 4: 4.0, 9: 9.0}
    assert found.draft_step == 0.3
    wider = {"nodes": 60, "breadth": 2}
    found = costs_of(tiny_bench, tiny(method="head-tree", method_options=wider, draft_length=9))
    # Two guesses, then four a level: nine levels hold 34, and each draft has one row more.
    assert sorted(found.costs.seconds) == [1, 3, 7, 11, 15, 19, 23, 27, 31, 35]


def test_a_method_that_cannot_speculate_here_has_no_costs_and_says_why(priced):
    bench = talking.bench(talking.pair(rewinds=False))
    found = costs_of(bench, RunSettings(pair="toy", prompt="", method="ngram"))
    assert (found.costs, found.missing) == (None, "speculation is off: told")
    assert priced == []


def test_a_measurement_for_which_memory_does_not_suffice_is_missing_and_a_stop_is_a_stop(
    monkeypatch, priced
):
    settings = RunSettings(pair="toy", prompt="", method="ngram")

    def raising(reason):
        def passes(*args, **how):
            raise reason

        monkeypatch.setattr(costing, "time_passes", passes)

    raising(Problem("The device is full.", "Free it."))
    assert costs_of(talking.bench(), settings).missing == "the device is full"
    raising(Cancelled())
    with pytest.raises(Cancelled):
        costs_of(talking.bench(), settings)


def test_a_bench_with_the_best_draft_lengths_measures_a_step_once(priced):
    prompts = [Prompt(name, "c", ("one two one two",)) for name in ("a", "b", "d")]
    settings = RunSettings(
        pair="toy", prompt="", max_new_tokens=4, draft_length_policy="best", baseline=False
    )
    planned = plan(prompts, [("head", 2), ("head", 3), ("early-exit", 2)], settings)
    runs = list(run_bench(talking.bench(), planned, report=print, pause=lambda: None))
    assert [run.record.outcome for run in runs] == ["finished"] * 9
    steps = [one for one in priced if one[0] == "steps"]
    assert len(steps) == len(set(steps)) == 2
    # A bench of its own measures for itself.
    list(run_bench(talking.bench(), planned[:1], report=print, pause=lambda: None))
    assert len([one for one in priced if one[0] == "steps"]) == 3


def test_a_step_measured_while_memory_lacked_is_measured_again():
    class Short(Tape):
        full = True

        def record(self, run):
            if Short.full:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return super().record(run)

    pair = talking.pair()
    target = pair.target.model
    target.passes, _ = taped(Short)
    how = HeadPicking(Sampling(), target.width, pair.head.ids)
    steps, ways = StepTimes(), []
    for full in (True, False, False):
        Short.full = full
        with target.passes.kept():
            steps.of(pair.head, context=64, pause=lambda: None, whole=ChainAsked(how, length=4))
        ways.append({said for said, *_ in steps._taken})
    lacking, *later = ways
    assert len(lacking) == 1
    assert later == [{*lacking, "captured graphs"}] * 2
