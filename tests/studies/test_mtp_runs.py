"""Runs with a target's own modules: the text is that of generate(), and the law the target's."""

from __future__ import annotations

import json

import pytest
import torch
import transformers
from mtp_kinds import write_deepseek_named, write_mimo_named, write_qwen_named, write_target

from app.library.catalogue import load_catalogue
from app.run.auditing import Audit, auditable
from app.run.identities import violations
from app.run.metrics import counts
from app.run.preparation import preparation
from app.run.problems import Problem
from app.run.settings import RunSettings, Sampling
from app.selftest.models import record_here
from app.studies import workbench
from app.studies.workbench import Workbench
from tiny_kinds import TOKENIZER

PROMPT = "one two, one two, three"
LENGTH = 20
WRITERS = {
    "deepseek": lambda folder: write_knowing(folder, "deepseek_v3", 1),
    "deepseek of two modules": lambda folder: write_knowing(folder, "deepseek_v3", 2),
    "glm": lambda folder: write_knowing(folder, "glm4_moe", 1),
    "mimo": write_mimo_named,
}


def write_knowing(folder, kind, modules):
    """A target of one layer, so that a module which is its last one is right now and then."""
    one = {"num_hidden_layers": 1, "first_k_dense_replace": 0}
    write_deepseek_named(folder, kind, modules, knowing=True, **one)


@pytest.fixture(autouse=True)
def one_thread():
    """Models as small as these lose by more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def offered(folder) -> Workbench:
    """A workbench with the catalogue of one pair, whose target lies beside it."""
    models = {"target": {"title": "Target", "source": {"folder": "target"}}}
    pairs = {"pair": {"title": "Pair", "target": "target", "method": "mtp"}}
    catalogue = folder / "models.yaml"
    catalogue.write_text(json.dumps({"models": models, "pairs": pairs}), encoding="utf-8")
    found = load_catalogue([catalogue])
    assert found.faults == ()
    return Workbench(found)


def settings(**changes) -> RunSettings:
    fixed = {
        "pair": "pair",
        "prompt": PROMPT,
        "raw": True,
        "method": "mtp",
        "max_new_tokens": LENGTH,
        "ignore_end_of_text": True,
        "precision": "fp32",
        "device": "cpu",
    }
    return RunSettings(**{**fixed, **changes})


def run(bench, **changes):
    record = record_here(bench, settings(**changes))
    assert record.outcome == "finished", record.message
    for name in ("baseline", "speculative"):
        assert violations(record.repetitions(name)[0], record.settings.max_new_tokens) == []
    return record


def texts(record) -> list[list[int]]:
    return [record.repetitions(name)[0].token_ids for name in ("baseline", "speculative")]


@pytest.mark.parametrize("writer", WRITERS)
def test_every_length_of_draft_writes_what_generate_writes(tmp_path, writer):
    WRITERS[writer](tmp_path / "target")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "target")
    model.generation_config = transformers.GenerationConfig(pad_token_id=0)
    ids = torch.tensor([TOKENIZER(PROMPT)["input_ids"]])
    expected = model.generate(ids, max_new_tokens=LENGTH, do_sample=False)[0, ids.shape[1] :]
    bench, kept, thrown = offered(tmp_path), 0, 0
    for length in range(1, 9):
        record = run(bench, draft_length=length)
        assert texts(record) == [expected.tolist()] * 2, length
        made = counts(record.repetitions("speculative")[0])
        kept, thrown = kept + made.accepted, thrown + made.drafted - made.accepted
        assert record.lossless
        depth = 2 if "two" in writer else 1
        beyond = any("chained beyond the trained depth" in note for note in record.notes)
        assert beyond == (length > depth)
        penalised = run(
            bench,
            draft_length=length,
            sampling=Sampling(repetition_penalty=1.4, presence_penalty=0.3),
        )
        plain, drafted = texts(penalised)
        assert plain == drafted != expected.tolist()
    assert record.draft.name == "MTP modules of Target"
    assert record.draft.parameters > 0
    assert thrown
    assert kept or writer == "mimo"


def test_what_is_drawn_keeps_the_targets_law(tmp_path):
    write_knowing(tmp_path / "target", "deepseek_v3", 1)
    wanted = Audit(auditable(settings()), 400)
    found = offered(tmp_path).audit(wanted, report=lambda _: None, pause=lambda: None)
    assert found.verdict == "within chance"
    assert found.lossless
    assert found.drafted > found.accepted > 0
    assert found.impossible == 0


def test_a_prompt_of_one_token_and_an_end_amid_a_draft(tmp_path):
    write_knowing(tmp_path / "target", "glm4_moe", 2)
    bench = offered(tmp_path)
    record = run(bench, prompt="a", draft_length=5)
    whole = texts(record)
    assert whole[0] == whole[1]
    assert len(whole[0]) == LENGTH
    # Another end of text: a guess that was kept, where it first comes up.
    kept, place = [], 1
    for round_ in record.repetitions("speculative")[0].rounds:
        kept += range(place, place + round_.count("accepted"))
        place += len(round_.committed)
    end = next(whole[0][at] for at in kept if whole[0][at] not in whole[0][:at])
    for file in ("config.json", "generation_config.json"):
        path = tmp_path / "target" / file
        said = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**said, "eos_token_id": end}), encoding="utf-8")
    record = run(offered(tmp_path), prompt="a", draft_length=5, ignore_end_of_text=False)
    ended = texts(record)
    assert ended[0] == ended[1] == whole[0][: whole[0].index(end) + 1]
    assert record.repetitions("speculative")[0].finish == "end of text"


@pytest.mark.parametrize("kind", ["qwen3_next", "qwen3_5_text"])
def test_a_target_that_cannot_be_rewound_is_refused_and_still_decodes(tmp_path, kind):
    # Its modules are read, but a rejected guess cannot be taken out of its state.
    write_qwen_named(tmp_path / "target", kind)
    record = run(offered(tmp_path), max_new_tokens=8)
    plain, drafted = texts(record)
    assert plain == drafted
    assert counts(record.repetitions("speculative")[0]).drafted == 0
    assert any("Speculation is off: the model's state cannot" in note for note in record.notes)
    assert not any("chained" in note for note in record.notes)
    assert not any("not used" in note for note in record.notes)


def test_a_target_without_modules_is_told_of(tmp_path):
    write_target(tmp_path / "target", "qwen2")
    bench = offered(tmp_path)
    with pytest.raises(Problem, match="Target has no modules for multi-token prediction") as told:
        bench.loaded(preparation(settings()), report=lambda _: None, pause=lambda: None)
    assert told.value.remedy
    # Any other method goes on.
    assert texts(run(bench, method="ngram"))


def test_modules_are_loaded_for_the_method_that_asks_for_them_alone(tmp_path):
    write_mimo_named(tmp_path / "target")
    bench = offered(tmp_path)
    quiet = {"report": lambda _: None, "pause": lambda: None}
    assert bench.loaded(preparation(settings(method="ngram")), **quiet).mtp is None
    asked = bench.loaded(preparation(settings()), **quiet)
    assert asked.mtp is not None
    assert asked.mtp.target is asked.target.model
    again = bench.loaded(preparation(settings(method="ngram")), **quiet)
    assert again.mtp is None
    assert again.target is asked.target
    # A study goes to and fro: they stay beside their target.
    assert bench.loaded(preparation(settings(max_new_tokens=3)), **quiet).mtp is asked.mtp


def test_a_study_that_asks_for_the_modules_every_other_run_loads_once(tmp_path, monkeypatch):
    write_mimo_named(tmp_path / "target")
    bench, loads = offered(tmp_path), []
    load = workbench.load_pair
    monkeypatch.setattr(
        workbench, "load_pair", lambda *args, **more: (loads.append(1), load(*args, **more))[1]
    )
    seen = []
    for method in ("mtp", "ngram", "mtp", "ngram"):
        asked = preparation(settings(method=method))
        seen.append(bench.loaded(asked, report=lambda _: None, pause=lambda: None))
        assert seen[-1].wanted == asked
    assert len(loads) == 1
    # To a run that asks for no modules the pair is one without.
    assert [pair.mtp is not None for pair in seen] == [True, False, True, False]
    assert len({id(pair.target) for pair in seen}) == 1
    assert len({id(pair.tokenizer) for pair in seen}) == 1
    other = preparation(settings(method="ngram", precision="bf16"))
    bench.loaded(other, report=lambda _: None, pause=lambda: None)
    assert len(loads) == 2
