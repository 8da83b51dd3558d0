"""The embedded target at work: against transformers' own generate, and what a workbench refuses."""

import itertools

import pytest
import torch
import transformers

from app import files
from app.run.events import PassesCosted, RunEnded
from app.run.identities import violations
from app.run.metrics import acceptance_by_position, counts, same_text
from app.run.preparation import Prepare
from app.run.problems import Cancelled, Problem
from app.run.settings import RunSettings, Sampling

pytestmark = pytest.mark.embedded

PROMPTS = [
    "Repeat this sentence twice: The quick brown fox jumps over the lazy dog.",
    "List the first ten whole numbers in words.",
]


def settings(prompt=PROMPTS[0], **changes):
    fixed = {"pair": "embedded", "precision": "fp32", "max_new_tokens": 48, "prompt": prompt}
    return RunSettings(**{**fixed, **changes})


@pytest.fixture(scope="module")
def whole(run_here):
    """The record of a run of the settings as they are, for tests that only read it."""
    return run_here(settings())


@pytest.fixture(scope="module")
def plain(whole):
    """The target as transformers loads it."""
    return transformers.AutoModelForCausalLM.from_pretrained(
        whole.target.folder, dtype=torch.float32, local_files_only=True
    )


@pytest.mark.parametrize("prompt", PROMPTS)
def test_fp32_greedy_text_is_that_of_generate(run_here, whole, plain, prompt):
    record = whole if prompt == PROMPTS[0] else run_here(settings(prompt))
    ids = torch.tensor([record.prompt_ids])
    expected = plain.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=48, do_sample=False
    )[0, ids.shape[1] :].tolist()
    baseline, speculative = record.repetitions("baseline")[0], record.repetitions("speculative")[0]
    assert baseline.token_ids == expected
    assert speculative.token_ids == expected
    assert same_text(record).same
    assert record.lossless
    assert record.target.rewinds
    assert record.target.rows_independent
    assert "Q4_1" in record.target.precision_note


def test_a_prompt_that_repeats_itself_has_its_guesses_accepted(whole):
    repetition = whole.repetitions("speculative")[0]
    assert counts(repetition).accepted >= 4
    places = acceptance_by_position(repetition.rounds)
    assert [place.position for place in places] == list(range(1, len(places) + 1))
    assert places[0].reached == counts(repetition).drafting_rounds


def test_lanes_in_turn_write_what_whole_lanes_write(run_here, whole):
    in_turn = run_here(settings(order="interleaved", detail="full"))
    for lane in ("speculative", "baseline"):
        assert in_turn.repetitions(lane)[0].token_ids == whole.repetitions(lane)[0].token_ids
    assert {at.lane for at in in_turn.order} == {"speculative", "baseline"}


def test_measured_lanes_alternate(run_here):
    record = run_here(settings(repetitions=3, max_new_tokens=4))
    letters = "".join("A" if at.lane == "speculative" else "B" for at in record.order)
    assert letters == "ABBAAB"


def test_sampled_text_depends_on_the_seed_alone(run_here):
    def ids(seed, **changes):
        sampling = Sampling(temperature=0.8, top_p=0.9, seed=seed)
        record = run_here(settings(sampling=sampling, max_new_tokens=24, **changes))
        assert same_text(record) is None
        return record.repetitions("speculative")[0].token_ids

    first, other = ids(1), ids(2, baseline=False)
    assert first != other
    assert ids(1, baseline=False) == first


def test_a_stop_keeps_what_was_written(run_here, whole):
    passes = itertools.count()

    def pause():
        if next(passes) > 12:
            raise Cancelled

    record = run_here(settings(order="interleaved"), pause)
    assert record.outcome == "cancelled"
    assert record.costs is None
    for lane in ("speculative", "baseline"):
        partial = record.repetitions(lane)[0]
        assert violations(partial) == []
        assert partial.finish == "cancelled"
        ids = whole.repetitions(lane)[0].token_ids
        assert partial.token_ids == ids[: len(partial.token_ids)]


def test_a_stop_string_ends_both_lanes_alike(run_here):
    record = run_here(settings(stop_strings=("fox",), max_new_tokens=40))
    for lane in ("speculative", "baseline"):
        repetition = record.repetitions(lane)[0]
        assert repetition.finish == "stop string"
        assert "fox" not in repetition.text
        assert repetition.text
    assert same_text(record).same


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt": "  "}, "prompt is empty"),
        ({"context_length": 16}, "context holds 16"),
        ({"pair": "nobody"}, "no pair named"),
        ({"method": "telepathy"}, "no method"),
        ({"method": "draft-model"}, "no draft model"),
        ({"method_options": {"longest": 99}}, "from 1 to 32"),
        ({"method_options": {"shortest": 9}}, "longer than the longest"),
        ({"device": "cuda:7"}, "no device"),
        ({"precision": "fp16", "device": "cpu"}, "crawls on a CPU"),
        ({"max_new_tokens": -1}, "max new tokens"),
        ({"sampling": Sampling(temperature=float("nan"))}, "temperature"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_runs(run_here, changes, message):
    with pytest.raises(Problem, match=message) as refused:
        run_here(settings(**changes))
    assert refused.value.remedy


def test_no_new_tokens_is_an_empty_text(run_here):
    record = run_here(settings(max_new_tokens=0))
    assert record.outcome == "finished"
    assert [r.text for r in record.repetitions("speculative")] == [""]


def test_on_a_cpu_the_embedded_pair_opens_in_packed_fp32(workbench):
    workbench.release()
    wanted = Prepare("embedded", device="cpu")
    ready = workbench.prepare(wanted, report=lambda p: None, pause=lambda: None)
    assert (ready.target.precision, ready.target.kernel) == (
        "fp32",
        "prepacked for oneDNN, lean pass",
    )
    assert any("default on a CPU" in note for note in ready.notes)


def test_the_tokenizer_of_the_embedded_model_counts_as_the_run_does(workbench, run_here):
    record = run_here(settings(max_new_tokens=1))
    assert workbench.count_tokens(PROMPTS[0]) == len(record.prompt_ids)
    assert files.shipped_catalogue().is_file()


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.9, seed=4)])
def test_a_stopped_run_goes_on_where_it_was(run_here, whole, sampling):
    part = run_here(settings(sampling=sampling, max_new_tokens=9, baseline=False))
    written = part.repetitions("speculative")[0].token_ids
    rest = run_here(
        settings(
            sampling=sampling,
            max_new_tokens=15,
            continues=part.run,
            prompt_ids=(*part.prompt_ids, *written),
        )
    )
    assert rest.prompt_ids == (*part.prompt_ids, *written)
    assert rest.settings.continues == part.run
    new = rest.repetitions("speculative")[0]
    if sampling.greedy:
        assert [*written, *new.token_ids] == whole.repetitions("speculative")[0].token_ids
        assert same_text(rest).same
    else:
        # The same law, not the same draws: those of the first part are spent.
        assert new.token_ids[:4] != written[:4]


def test_ids_of_another_model_are_refused(run_here):
    with pytest.raises(Problem, match="another model"):
        run_here(settings(continues="r", prompt_ids=(1, 10**6)))
    with pytest.raises(Problem, match="both the run"):
        run_here(settings(prompt_ids=(1, 2)))


def test_a_run_knows_what_its_passes_cost(run_here, workbench, monkeypatch, tmp_path):
    monkeypatch.setattr("app.studies.costing.cache_folder", lambda: tmp_path)
    monkeypatch.setattr("app.studies.conditions.OTHER_LOAD", 1.0)  # whatever else runs here now
    monkeypatch.setattr("app.studies.conditions.FALL", 1.0)
    told, events = [], []
    workbench.run(
        "run",
        settings(max_new_tokens=4),
        emit=events.append,
        report=lambda progress: told.append(progress.stage),
        pause=lambda: None,
    )
    assert isinstance(events[-1], RunEnded)
    costed = events[-2]
    assert isinstance(costed, PassesCosted)
    assert sorted(costed.costs.seconds) == list(range(1, 10))
    assert costed.costs.context_bucket == 256
    assert "measuring what a pass costs" in told
    monkeypatch.setattr("app.studies.costing.BELIEVED", 100.0)  # however fast the machine is now
    assert run_here(settings(max_new_tokens=4)).costs == costed.costs


def test_kept_costs_are_held_against_the_passes_of_the_run_itself(run_here, monkeypatch):
    given = []

    def costs(*_, seen, **__):
        given.append(seen)
        raise Cancelled

    monkeypatch.setattr("app.studies.run_costs.costs_of", costs)
    record = run_here(settings(max_new_tokens=6))
    rounds = record.repetitions("baseline")[0].rounds
    assert len(rounds) == 5  # the first token comes from the prompt's own pass
    passes = sorted(round_.phases.verify for round_ in rounds)
    run_here(settings(max_new_tokens=6, baseline=False))
    assert given == [passes[2], None]


def test_a_stop_while_costs_are_measured_leaves_a_finished_run(workbench, monkeypatch, tmp_path):
    monkeypatch.setattr("app.studies.costing.cache_folder", lambda: tmp_path)
    told, events = [], []

    def pause():
        if "measuring what a pass costs" in told:
            raise Cancelled

    workbench.run(
        "run",
        settings(max_new_tokens=4),
        emit=events.append,
        report=lambda progress: told.append(progress.stage),
        pause=pause,
    )
    assert events[-1].outcome == "finished"
    assert not any(isinstance(event, PassesCosted) for event in events)
    assert list(tmp_path.iterdir()) == []


def test_what_the_machine_did_is_part_of_the_record(run_here, monkeypatch):
    monkeypatch.setattr("app.studies.conditions._plugged", lambda: False)
    assert "battery" in [flag.kind for flag in run_here(settings(max_new_tokens=2)).flags]
