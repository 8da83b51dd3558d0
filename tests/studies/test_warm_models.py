"""What stays loaded from one wish to the next, and what is let go before anything else is read."""

import gc
import json
import weakref

import pytest
import torch

from app.library.catalogue import load_catalogue
from app.library.head_folder import MadeFor, fingerprint
from app.library.preflight import check
from app.models import precision, preparing
from app.models.head_file import save_head
from app.run.preparation import Prepare, Released
from app.run.problems import Cancelled, Problem
from app.run.settings import RunSettings
from app.selftest.models import record_here
from app.selftest.tiny_models import last_layer_head
from app.studies.workbench import Workbench
from tiny_kinds import write_kind

PAIRS = {
    "one": {"target": "big", "draft": "small"},
    "other": {"target": "big", "draft": "third"},
    "swapped": {"target": "small", "draft": "big"},
    "alone": {"target": "big", "method": "ngram"},
    "apart": {"target": "big", "draft": "small", "draft_device": "cuda:77"},
    "headed": {"target": "big", "head": "head", "method": "head"},
    "broken": {"target": "big", "draft": "broken"},
}


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    """Three models that can read each other, one whose weights are not its own, and a head."""
    folder = tmp_path_factory.mktemp("models")
    write_kind(folder / "big", "llama")
    for number, name in enumerate(("small", "third", "broken")):
        write_kind(folder / name, "llama", disturbance=0.01 * (number + 1))
    config = json.loads((folder / "broken" / "config.json").read_text(encoding="utf-8"))
    spoilt = json.dumps({**config, "intermediate_size": 64})
    (folder / "broken" / "config.json").write_text(spoilt, encoding="utf-8")
    write_head(folder)
    models = {
        name: {"title": name, "source": {"folder": name}}
        for name in ("big", "small", "third", "broken", "head")
    }
    pairs = {name: {"title": name, "method": "draft-model", **pair} for name, pair in PAIRS.items()}
    (folder / "models.yaml").write_text(
        json.dumps({"models": models, "pairs": pairs}), encoding="utf-8"
    )
    found = load_catalogue([folder / "models.yaml"])
    assert found.faults == ()
    return found


def write_head(folder):
    from transformers import AutoModelForCausalLM

    facts = check(folder / "big")
    plain = AutoModelForCausalLM.from_pretrained(folder / "big", dtype=torch.float32)
    ids = torch.arange(0, facts.vocabulary, 2)
    made_for = MadeFor("big", fingerprint(facts), facts.vocabulary)
    save_head(folder / "head", last_layer_head(plain, ids), ids, made_for, "Not at all.")


@pytest.fixture
def bench(catalogue):
    return Workbench(catalogue)


@pytest.fixture
def reads(monkeypatch):
    """Every model that is read, with how many of the models read before are still alive then."""
    done, alive, load = [], [], preparing.load

    def watched(folder, *, name, precision, **others):
        gc.collect()
        living = sum(model() is not None for model in alive)
        done.append((name, precision, living))
        loaded = load(folder, name=name, precision=precision, **others)
        alive.append(weakref.ref(loaded.model.inner))
        return loaded

    monkeypatch.setattr(preparing, "load", watched)
    return done


def wish(pair, precision="fp32", draft_precision="fp32", **others):
    return Prepare(pair, precision, draft_precision, "cpu", **others)


def prepare(bench, *wanted, pause=lambda: None, **others):
    return bench.prepare(wish(*wanted, **others), report=lambda _: None, pause=pause)


def loaded(bench, *wanted):
    return bench.loaded(wish(*wanted), report=lambda _: None, pause=lambda: None)


def test_the_same_wish_twice_reads_nothing_the_second_time(bench, reads):
    # C17: a double click.
    assert prepare(bench, "one") == prepare(bench, "one")
    assert [name for name, *_ in reads] == ["big", "small"]


def test_another_draft_leaves_the_target_and_takes_the_old_drafts_place(bench, reads):
    before = weakref.ref(loaded(bench, "one").target.model)
    after = loaded(bench, "other")
    assert after.target.model is before()
    # When the third was read, the big one alone was in memory.
    assert reads == [("big", "fp32", 0), ("small", "fp32", 1), ("third", "fp32", 1)]


def test_another_precision_of_one_reads_that_one_alone(bench, reads):
    prepare(bench, "one")
    prepare(bench, "one", "fp32", "bf16")
    prepare(bench, "one", "bf16", "bf16")
    assert reads == [
        ("big", "fp32", 0),
        ("small", "fp32", 1),
        ("small", "bf16", 1),
        ("big", "bf16", 1),
    ]


def test_a_pair_the_other_way_round_reads_nothing(bench, reads):
    prepare(bench, "one")
    ready = prepare(bench, "swapped")
    assert (ready.target.name, ready.draft.name) == ("small", "big")
    assert len(reads) == 2


def test_what_a_pair_does_not_need_is_let_go_though_nothing_is_read(bench, reads):
    draft = weakref.ref(loaded(bench, "one").draft.model.inner)
    prepare(bench, "alone")
    assert draft() is None
    assert len(reads) == 2


def test_a_head_comes_and_goes_beside_a_target_that_stays(bench, reads):
    prepare(bench, "alone")
    pair = loaded(bench, "headed")
    head = weakref.ref(pair.head)
    assert pair.head.target is pair.target.model
    del pair
    prepare(bench, "one")
    assert head() is None
    assert [name for name, *_ in reads] == ["big", "small"]


def test_a_precision_that_was_the_machines_choice_stays_though_memory_is_less_now(
    bench, reads, monkeypatch
):
    chosen = iter(["fp32", "bf16"])
    monkeypatch.setattr(precision, "choose_precision", lambda *_: (next(chosen), "the default"))
    first = prepare(bench, "one", None)
    again = prepare(bench, "other", None)
    assert first.target == again.target
    assert again.notes[-1] == "fp32 is the default."
    # And one that is asked for by its name is not told of as a choice.
    assert all("default" not in note for note in prepare(bench, "other").notes)
    assert [name for name, *_ in reads] == ["big", "small", "third"]


def test_released_models_are_gone_and_come_back_with_the_next_run(bench, reads):
    pair = loaded(bench, "headed")
    parts = [pair.target.model.inner, pair.target.model, pair.head, pair.head.module]
    sizes = pair.target.model.weight_bytes
    refs = [weakref.ref(part) for part in parts]
    settings = RunSettings(
        "headed", "one two, one two", raw=True, method="head", precision="fp32", device="cpu"
    )
    record = record_here(bench, settings)
    del pair, parts
    assert bench.release() == Released(("big",), sizes)
    # The record of a run is still held: it has numbers and text, and no tensor.
    assert record.outcome == "finished"
    assert [ref() for ref in refs] == [None] * 4
    with pytest.raises(Problem, match="No model is loaded"):
        bench.count_tokens("one")
    assert record_here(bench, settings).outcome == "finished"
    assert [name for name, *_ in reads] == ["big", "big"]
    bench.release()
    assert bench.release() == Released()


def test_a_pair_says_where_its_draft_model_goes_unless_a_run_does(bench):
    with pytest.raises(Problem, match="no device 'cuda:77'"):
        bench.loaded(Prepare("apart"), report=lambda _: None, pause=lambda: None)
    pair = bench.loaded(
        Prepare("apart", draft_device="cpu"), report=lambda _: None, pause=lambda: None
    )
    assert [model.device.type for model in pair.models] == ["cpu", "cpu"]


def test_a_load_that_fails_half_way_leaves_nothing_of_it(bench, reads):
    # C13: the fault is still held, as by a program that shows it.
    before = living()
    with pytest.raises(Problem, match="belong together") as held:
        prepare(bench, "broken")
    assert living() == before + 1  # the target, which is whole
    assert held.value.remedy
    bench.release()
    assert living() == before


def test_a_load_that_is_stopped_leaves_what_was_whole_before(bench, reads):
    before = living()
    target = loaded(bench, "alone").target.model
    steps = iter(range(10**6))

    def pause():
        if next(steps) > 20:
            raise Cancelled

    with pytest.raises(Cancelled) as held:
        prepare(bench, "one", pause=pause)
    assert living() == before + 1
    assert loaded(bench, "one").target.model is target
    assert [name for name, *_ in reads] == ["big", "small", "small"]
    assert held.value is not None


def living():
    """Models of transformers that are in memory, those that other tests keep included."""
    from transformers import LlamaForCausalLM

    gc.collect()
    return sum(type(one) is LlamaForCausalLM for one in gc.get_objects())
