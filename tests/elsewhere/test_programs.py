"""Every program, for every run."""

import msgspec
import pytest
from recorded import hostile_record, record_of, run_record

from app.elsewhere.offered import setup_offered
from app.elsewhere.programs import PROGRAMS, recipe, recipes
from app.elsewhere.setup import place_notes, setup_of
from app.files import shipped_catalogue
from app.library.catalogue import load_catalogue
from app.run.methods import METHODS
from app.run.problems import Problem
from app.run.rules import RULES, check_rule
from app.run.settings import RunSettings


@pytest.mark.parametrize("make", [run_record, record_of, hostile_record])
def test_a_run_has_a_recipe_for_every_program(make):
    found = recipes(make())
    assert [one.program for one in found] == list(PROGRAMS)
    assert all(one.release and (one.text or one.not_carried) for one in found)


def refusal(settings) -> str:
    """Why this rule cannot decide on this method's guesses; empty if it can."""
    try:
        check_rule(settings)
    except Problem as problem:
        return problem.message
    return ""


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_with_every_rule_is_written_or_refused_in_words(
    name, method, rule, setup_with
):
    drawn = {"temperature": 0.0 if rule == "greedy" else 0.7}
    setup = setup_with(method=method, rule=rule, sampling=drawn, draft_length=8)
    found = recipe(name, setup)
    refused = refusal(setup.settings)
    if refused:
        assert found.not_carried == (refused,)
        return
    assert found.text or "no counterpart of the method" in found.not_carried[0]
    if RULES[rule].lossless or method == "nothing" or not found.text:
        return
    lossy = any(rule in line for line in found.not_carried)
    own = {"lenience": (), "typical": (), "ensemble": ("assistant_ensemble_weight",),
           "fly": ('"fly"',), "synthetic": ('"synthetic"', "--spec-synth-len")}  # fmt: skip
    assert lossy or any(word in found.text for word in own[rule])


def test_models_of_the_hub_are_named_by_their_repositories(setup_with):
    record = run_record()
    cache = "/home/x/.cache/huggingface/hub/models--org--Big-1.5B-it/snapshots/0123"
    record.target = msgspec.structs.replace(record.target, folder=cache)
    setup = setup_of(record)
    assert setup.target == "org/Big-1.5B-it"
    windows = cache.replace("/", "\\")
    record.target = msgspec.structs.replace(record.target, folder=windows)
    assert setup_of(record).target == "org/Big-1.5B-it"


def test_other_models_are_named_without_their_place():
    record = run_record()
    record.target = msgspec.structs.replace(record.target, folder="/home/secret/big", name="big")
    for one in recipes(record):
        assert "secret" not in one.text
        assert "path/to/big" in one.text


def test_a_run_carries_the_precisions_that_it_was_made_in():
    record = run_record(method="draft-model")
    record.target = msgspec.structs.replace(record.target, name="big", precision="fp32")
    record.draft = msgspec.structs.replace(record.target, precision="nf4")
    vllm, llama_cpp, transformers = recipes(record)
    assert "--dtype float32" in vllm.text
    assert '"quantization": "bitsandbytes"' in vllm.text
    assert "dtype=torch.float32" in transformers.text
    assert "bnb_4bit_quant_type='nf4'" in transformers.text
    assert any("target is held in fp32 and the draft is held in nf4" in line
               for line in llama_cpp.not_carried)  # fmt: skip
    assert any("two files" in line for line in llama_cpp.not_carried)


def test_a_pair_brings_its_drafts_precision():
    catalogue = load_catalogue([shipped_catalogue()])
    settings = RunSettings("embedded-nf4-draft", "Hello", method="draft-model")
    setup = setup_offered(settings, catalogue)
    assert (setup.precision, setup.draft_precision) == ("", "nf4")
    asked = msgspec.structs.replace(settings, precision="bf16", draft_precision="fp32")
    setup = setup_offered(asked, catalogue)
    assert (setup.precision, setup.draft_precision) == ("bf16", "fp32")


def test_settings_of_another_version_are_refused_in_words():
    record = run_record()
    record.settings = msgspec.structs.replace(record.settings, method="lookahead")
    for one in recipes(record):
        assert one.text == ""
        assert one.not_carried == ("There is no method 'lookahead'.",)


def test_a_targets_own_modules_are_no_model_to_be_named():
    record = run_record(method="mtp")
    record.draft = msgspec.structs.replace(record.target, name="MTP modules of X")
    setup = setup_of(record)
    assert setup.draft == ""
    assert not any("MTP modules" in line for line in place_notes(setup))


def test_a_model_that_is_both_is_told_of_as_both(setup_with):
    setup = msgspec.structs.replace(setup_with(), target="path/to/x", draft="path/to/x")
    assert [line.split("'s folder")[0].split()[-1] for line in place_notes(setup)] == [
        "target",
        "draft",
    ]
