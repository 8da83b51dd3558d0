"""Checkpoints of many architectures, from a folder to a run: the text is that of generate()."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers

from app.library.catalogue import load_catalogue
from app.library.head_folder import MadeFor, fingerprint
from app.library.preflight import check
from app.models.head_file import save_head
from app.models.loading import load
from app.run.identities import violations
from app.run.metrics import counts
from app.run.problems import Problem
from app.run.record import RunRecord
from app.run.settings import RunSettings
from app.selftest.models import record_here
from app.selftest.tiny_models import last_layer_head
from app.studies.workbench import Workbench
from published_heads import first_version, third_version
from tiny_kinds import KINDS, STATEFUL, TOKENIZER, WINDOW, write_kind

PROMPT = "one two, one two, three"
LENGTH = 32
DISTURBANCE = 0.01
"""How far a draft's weights are from its target's: it guesses right often, not always."""


def offered(folder: Path, *, draft: str = "draft", head: str | None = None) -> Workbench:
    """A workbench with the catalogue of one pair, whose models lie beside it."""
    names = ["target", *([draft] if draft != "target" else []), *([head] if head else [])]
    models = {name: {"title": name.capitalize(), "source": {"folder": name}} for name in names}
    pair = {"title": "Pair", "target": "target", "method": "draft-model", "draft": draft}
    pairs = {"pair": {**pair, **({"head": head} if head else {})}}
    catalogue = folder / "models.yaml"
    catalogue.write_text(json.dumps({"models": models, "pairs": pairs}), encoding="utf-8")
    found = load_catalogue([catalogue])
    assert found.faults == ()
    return Workbench(found)


def run(bench: Workbench, method: str, **changes) -> RunRecord:
    """A run of that pair in fp32, to its full length."""
    fixed = {
        "pair": "pair",
        "prompt": PROMPT,
        "raw": True,
        "method": method,
        "method_options": {"shortest": 1} if method.startswith("ngram") else {},
        "max_new_tokens": LENGTH,
        "ignore_end_of_text": True,
        "precision": "fp32",
        "draft_precision": "fp32",
        "device": "cpu",
    }
    record = record_here(bench, RunSettings(**{**fixed, **changes}))
    assert record.outcome == "finished", record.message
    return record


def generated(folder: Path, *, prompt: str = PROMPT, length: int = LENGTH) -> list[int]:
    """What transformers itself writes, from the same files."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model.generation_config = transformers.GenerationConfig(pad_token_id=0)
    ids = torch.tensor([TOKENIZER(prompt)["input_ids"]])
    written = model.generate(ids, max_new_tokens=length, do_sample=False)
    return written[0, ids.shape[1] :].tolist()


def texts_of(record: RunRecord) -> list[list[int]]:
    """What both lanes wrote; their counts add up."""
    lanes = [record.repetitions(name)[0] for name in ("baseline", "speculative")]
    for lane in lanes:
        assert violations(lane, record.settings.max_new_tokens) == []
    return [lane.token_ids for lane in lanes]


def fate(record: RunRecord) -> tuple[int, int]:
    """How many guesses were kept, and how many thrown away."""
    made = counts(record.repetitions("speculative")[0])
    return made.accepted, made.drafted - made.accepted


@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture_writes_what_generate_writes(kind, tmp_path):
    target = write_kind(tmp_path / "target", kind)
    write_kind(tmp_path / "draft", kind, disturbance=DISTURBANCE)
    bench, expected = offered(tmp_path), generated(target)
    assert len(expected) == LENGTH > WINDOW
    for method in ("ngram", "draft-model"):
        record = run(bench, method)
        assert texts_of(record) == [expected, expected], method
        kept, thrown = fate(record)
        assert kept, method
        assert thrown, method
        assert record.lossless
        assert all("no speed-up" in note for note in record.notes)  # a copy costs as much
        for model in (record.target, record.draft):
            assert model is None or (model.rewinds and model.rows_independent)
    assert record.draft is not None
    slides = "window" in record.target.rewind_note
    assert slides == (kind in ("mistral", "gemma2", "gemma3", "phi3"))


@pytest.mark.parametrize("kind", ["llama", "gemma3", "gpt2", "mixtral"])
def test_a_targets_own_first_layers_write_what_generate_writes(kind, tmp_path):
    target = write_kind(tmp_path / "target", kind)
    bench, expected = offered(tmp_path, draft="target"), generated(target)
    record = run(bench, "early-exit")
    assert texts_of(record) == [expected, expected]
    assert sum(fate(record)) > LENGTH // 2
    assert record.lossless
    assert record.draft is None
    assert record.notes == ("Guessed by the first 1 of 2 layers of Target.",)
    caches = {lane.repetitions[0].cache_bytes for lane in record.lanes}
    assert len(caches) == 1  # the layers that guess have no cache of their own
    with pytest.raises(Problem, match="2 layers are to guess, and Target has 2 in all"):
        run(bench, "early-exit", method_options={"exit_layer": 2})


def test_a_pair_whose_target_has_no_layer_to_leave_out_decodes_plainly(tmp_path):
    target = write_kind(tmp_path / "target", "llama", num_hidden_layers=1)
    record = run(offered(tmp_path, draft="target"), "early-exit")
    expected = generated(target)
    assert texts_of(record) == [expected, expected]
    assert fate(record) == (0, 0)
    assert any("cannot guess for itself, as it has one layer" in note for note in record.notes)


def test_a_draft_model_with_copies_writes_what_generate_writes(tmp_path):
    target = write_kind(tmp_path / "target", "qwen3")
    write_kind(tmp_path / "draft", "qwen3", disturbance=DISTURBANCE)
    bench, expected = offered(tmp_path), generated(target)
    alone = run(bench, "draft-model")
    helped = run(bench, "cascade", method_options={"shortest": 1})
    assert texts_of(helped) == [expected, expected]
    assert fate(helped) == fate(alone)  # its guesses are those of the draft model


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "mistral"])
def test_a_draft_head_writes_what_generate_writes(kind, tmp_path):
    # A target of one layer is its own head, but for the tokens that the head never guesses.
    folder = write_kind(tmp_path / "target", kind, num_hidden_layers=1)
    write_kind(tmp_path / "draft", kind, num_hidden_layers=1, disturbance=DISTURBANCE)
    facts = check(folder)
    made_for = MadeFor("Target", fingerprint(facts), facts.vocabulary)
    ids = torch.tensor([token for token in range(facts.vocabulary) if token % 5])
    plain = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    save_head(tmp_path / "head", last_layer_head(plain, ids), ids, made_for, "Not at all.")
    bench, expected = offered(tmp_path, head="head"), generated(folder)
    for method in ("head", "ngram-else-head"):
        record = run(bench, method)
        assert texts_of(record) == [expected, expected], method
        assert all(fate(record)), method
        assert record.notes == ()  # what is to be said of the draft model does not belong here


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "mistral"])
@pytest.mark.parametrize("version", ["first", "third"])
def test_a_published_head_writes_what_generate_writes(kind, version, tmp_path):
    folder = write_kind(tmp_path / "target", kind, num_hidden_layers=3)
    write_kind(tmp_path / "draft", kind)
    vocabulary = check(folder).vocabulary
    if version == "first":
        first_version(tmp_path / "head", vocabulary)
    else:
        ids = [token for token in range(vocabulary) if token % 5]
        third_version(tmp_path / "head", vocabulary, ids=ids)
    bench, expected = offered(tmp_path, head="head"), generated(folder)
    record = run(bench, "head")
    assert texts_of(record) == [expected, expected]
    assert sum(fate(record)) > 0
    assert record.draft is not None
    assert record.draft.name == f"EAGLE-{1 if version == 'first' else 3} head for head"


@pytest.mark.parametrize("kind", STATEFUL)
def test_a_state_that_cannot_be_rewound_is_refused_and_still_decodes(kind, tmp_path):
    # A15: as the target, and as the draft of a target that could.
    stateful = write_kind(tmp_path / "target", kind)
    loaded = load(
        check(stateful),
        name="Target",
        precision="fp32",
        device=torch.device("cpu"),
    )
    assert not loaded.rewinding.holds
    record = run(offered(tmp_path, draft="target"), "ngram")
    expected = generated(stateful)
    assert texts_of(record) == [expected, expected]
    assert fate(record) == (0, 0)
    rounds = record.repetitions("speculative")[0].rounds
    assert {round_.limited_by for round_ in rounds} == {"speculation refused"}
    assert not record.target.rewinds
    assert any("Speculation is off: the model's state cannot" in note for note in record.notes)

    stateful.rename(tmp_path / "draft")
    target = write_kind(tmp_path / "target", "llama")
    record = run(offered(tmp_path), "draft-model", max_new_tokens=8)
    expected = generated(target, length=8)
    assert texts_of(record) == [expected, expected]
    assert fate(record) == (0, 0)
    assert any("Speculation is off, for the draft model" in note for note in record.notes)


@pytest.mark.parametrize(("target_rows", "draft_rows"), [(257, 288), (288, 272)])
def test_a_vocabulary_padded_otherwise_is_the_same_vocabulary(target_rows, draft_rows, tmp_path):
    # A20: the padding's rows are as random as the others, so both models want such ids.
    target = write_kind(tmp_path / "target", "qwen2", rows=target_rows)
    write_kind(tmp_path / "draft", "llama", rows=draft_rows)
    record = run(offered(tmp_path), "draft-model")
    expected = generated(target)
    assert texts_of(record) == [expected, expected]
    guesses = record.repetitions("speculative")[0].rounds
    thrown = [token.id for round_ in guesses for token in round_.thrown]
    assert thrown
    assert max(thrown) < len(TOKENIZER)


@pytest.mark.parametrize("kind", ["gpt2", "opt"])
def test_a_draft_at_the_end_of_its_learned_positions_leaves_the_rest_to_the_target(kind, tmp_path):
    # A30: one position more would be an index error.
    target = write_kind(tmp_path / "target", kind, max_position_embeddings=128)
    write_kind(tmp_path / "draft", kind, max_position_embeddings=48)
    bench = offered(tmp_path)
    record = run(bench, "draft-model", max_new_tokens=60)
    expected = generated(target, length=60)
    assert texts_of(record) == [expected, expected]
    rounds = record.repetitions("speculative")[0].rounds
    assert rounds[0].drafted
    assert not any(round_.drafted for round_ in rounds[-10:])
    assert {round_.limited_by for round_ in rounds[-10:-1]} == {"draft's context"}


@pytest.mark.parametrize("kind", ["gpt2", "opt"])
def test_a_text_fills_all_learned_positions_and_no_more(kind, tmp_path):
    target = write_kind(tmp_path / "target", kind, max_position_embeddings=48)
    bench = offered(tmp_path, draft="target")
    record = run(bench, "ngram", max_new_tokens=99)
    room = 48 - len(record.prompt_ids)
    written = texts_of(record)
    assert written[0] == written[1]
    assert record.repetitions("speculative")[0].finish == "context"
    assert written[0][:room] == generated(target, length=room)


def test_what_a_folder_suggests_is_told_and_not_applied(tmp_path):
    # A32: generate() would take the penalty from the file even when it does not sample.
    suggested = {"do_sample": True, "temperature": 0.6, "top_k": 20, "repetition_penalty": 1.3}
    target = write_kind(tmp_path / "target", "qwen2", generation=suggested)
    record = run(offered(tmp_path, draft="target"), "ngram")
    expected = generated(target)
    assert texts_of(record) == [expected, expected]
    assert record.notes == (
        "The model's files suggest temperature 0.6, top-k 20, top-p 1, repetition penalty 1.3; "
        "not applied unasked.",
    )


def edit_tokenizer(folder: Path, change) -> None:
    """Changes what a folder's tokenizer.json says."""
    file = folder / "tokenizer.json"
    said = json.loads(file.read_text(encoding="utf-8"))
    change(said)
    file.write_text(json.dumps(said), encoding="utf-8")


def test_a_draft_whose_ids_mean_other_tokens_is_refused(tmp_path):
    # A21: as many ids, two of them swapped.
    write_kind(tmp_path / "target", "qwen2")
    draft = write_kind(tmp_path / "draft", "qwen2", disturbance=DISTURBANCE)

    def swap(said):
        vocabulary = said["model"]["vocab"]
        vocabulary["A"], vocabulary["B"] = vocabulary["B"], vocabulary["A"]

    edit_tokenizer(draft, swap)
    with pytest.raises(Problem, match="reads another vocabulary than its target") as caught:
        run(offered(tmp_path), "draft-model")
    assert "tli" in caught.value.remedy


def test_a_draft_that_would_cut_text_otherwise_is_given_the_targets_ids(tmp_path):
    # A22: the same vocabulary, but letters made small, and a token put before every text.
    target = write_kind(tmp_path / "target", "qwen2")
    draft = write_kind(tmp_path / "draft", "qwen2", disturbance=DISTURBANCE)

    def cut_otherwise(said):
        said["normalizer"] = {"type": "Lowercase"}
        said["pre_tokenizer"]["add_prefix_space"] = True

    edit_tokenizer(draft, cut_otherwise)
    prompt = "One TWO, One TWO"
    record = run(offered(tmp_path), "draft-model", prompt=prompt)
    expected = generated(target, prompt=prompt)
    assert texts_of(record) == [expected, expected]
    assert list(record.prompt_ids) == TOKENIZER(prompt)["input_ids"]
    assert all(fate(record))


def test_a_block_of_thoughts_that_the_template_opens_is_text_like_any_other(tmp_path):
    # A36: the opening is in the prompt, so the text may hold the closing alone, or neither.
    target = write_kind(tmp_path / "target", "llama")
    said = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
    template = said + "{{ '<think>\\n' }}"
    (target / "chat_template.jinja").write_text(template, encoding="utf-8")
    record = run(offered(tmp_path, draft="target"), "ngram", raw=False, prompt="why")
    rendered = "<user>why<think>\n"
    assert list(record.prompt_ids) == TOKENIZER(rendered)["input_ids"]
    expected = generated(target, prompt=rendered)
    assert texts_of(record) == [expected, expected]
    told = record.repetitions("speculative")[0].text
    assert told == TOKENIZER.decode(expected, skip_special_tokens=False)


def test_a_prompt_with_a_token_that_the_model_has_no_row_for_is_refused(tmp_path):
    target = write_kind(tmp_path / "target", "llama")
    added = {"content": "<far>", "special": True, "normalized": False, "single_word": False}
    far = {"id": len(TOKENIZER), "lstrip": False, "rstrip": False, **added}
    edit_tokenizer(target, lambda said: said["added_tokens"].append(far))
    bench = offered(tmp_path, draft="target")
    assert run(bench, "ngram", max_new_tokens=2).outcome == "finished"
    with pytest.raises(Problem, match="as id 257, and the model knows ids below 257"):
        run(bench, "ngram", prompt="one <far> two")
