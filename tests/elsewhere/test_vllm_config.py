"""vLLM's JSON: what it means here, and what is refused by name."""

import json

import pytest

from app.elsewhere import vllm_config
from app.elsewhere.vllm_config import read_vllm
from app.elsewhere.vllm_fields import AT_REST, EVERY, METHODS, NO_EFFECT, NOT_HERE, SAMPLING
from app.run.methods import METHODS as OFFERED
from app.run.problems import Problem
from app.run.settings import Sampling

GREEDY, DRAWN = Sampling(), Sampling(temperature=0.7)
NGRAM = {"method": "ngram", "num_speculative_tokens": 5}
DRAFT = {"method": "draft_model", "model": "a/small", "num_speculative_tokens": 5}


def read(sampling=GREEDY, /, **fields):
    return read_vllm(json.dumps(fields), sampling)


def test_the_example_of_vllms_documentation():
    text = '{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}'
    found = read_vllm(text, GREEDY)
    assert (found.method, found.draft_length, found.rule) == ("ngram", 5, "exact")
    # vLLM: what is left out of the two is the other; the earliest of the longest matches.
    assert found.method_options == {"shortest": 4, "longest": 4, "match": "first"}
    assert found.notes == ()
    OFFERED["ngram"].filled(found.method_options)


@pytest.mark.parametrize(
    ("given", "bounds"),
    [
        ({}, (5, 5)),
        ({"prompt_lookup_min": 2}, (2, 2)),
        ({"prompt_lookup_min": 2, "prompt_lookup_max": 7}, (2, 7)),
        ({"prompt_lookup_min": None, "prompt_lookup_max": 3}, (3, 3)),
    ],
)
def test_bounds_of_a_match_that_are_left_out_are_those_of_vllm(given, bounds):
    found = read(**NGRAM, **given).method_options
    assert (found["shortest"], found["longest"]) == bounds


@pytest.mark.parametrize(
    ("fields", "method"),
    [
        ({"method": "ngram_gpu"}, "ngram"),
        ({"model": "[ngram]"}, "ngram"),
        ({"model": "a/b"}, "draft-model"),
        ({"model": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"}, "head"),
        ({"model": "yuhuili/EAGLE-LLaMA3-Instruct-8B"}, "head"),
        ({"method": "eagle", "model": "a/b"}, "head"),
    ],
)
def test_the_method_is_said_or_follows_from_the_model(fields, method):
    assert read(num_speculative_tokens=2, **fields).method == method


@pytest.mark.parametrize("method", METHODS)
def test_a_method_that_this_version_has_not_is_refused_by_name(method, monkeypatch):
    monkeypatch.setattr(vllm_config.methods, "METHODS", {"nothing": OFFERED["nothing"]})
    with pytest.raises(Problem, match=f"{METHODS[method]}.*not run by this version"):
        read(method=method, num_speculative_tokens=2)


@pytest.mark.parametrize("method", NOT_HERE)
def test_a_method_of_vllm_alone_is_refused_and_explained(method):
    with pytest.raises(Problem, match="not run by this version"):
        read(method=method, num_speculative_tokens=2)


def test_a_program_in_the_place_of_a_model_is_refused():
    with pytest.raises(Problem, match="'custom_class' runs a program of its own"):
        read(model="mine.Proposer", num_speculative_tokens=2)


@pytest.mark.parametrize(
    ("given", "rule", "options"),
    [
        ({}, "exact", {}),
        ({"rejection_sample_method": "standard"}, "exact", {}),
        ({"rejection_sample_method": "block"}, "block", {}),
        (
            {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.5},
            "synthetic",
            {"length": 2.5},
        ),
        (
            {
                "rejection_sample_method": "synthetic",
                "synthetic_acceptance_rates": [0.9, 0.5, 0.5, 0.1, 0],
            },
            "synthetic",
            {"rates": "0.9, 0.5, 0.5, 0.1, 0"},
        ),
        (
            {"rejection_sample_method": "fly", "fly_window_size": 2, "fly_entropy_top_k": 3},
            "fly",
            {"window": 2, "reading": "vllm", "entropy": 0.3},
        ),
        (
            {"rejection_sample_method": "fly", "fly_entropy_threshold": 0.5},
            "fly",
            {"window": 0, "reading": "vllm", "entropy": 0.5},
        ),
    ],
)
def test_rules(given, rule, options):
    found = read(**NGRAM, **given)
    assert (found.rule, found.rule_options) == (rule, options)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rejection_sample_method": "strict"}, "one of: standard, block, synthetic, fly"),
        ({"rejection_sample_method": "synthetic"}, "Synthetic acceptance needs one of"),
        ({"synthetic_acceptance_length": 2.0}, "Synthetic acceptance needs one of"),
        (
            {"rejection_sample_method": "synthetic", "synthetic_acceptance_rates": [0.9]},
            "5 numbers",
        ),
        (
            {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 7},
            "6 tokens at most",
        ),
        ({"rejection_sample_method": "fly", "fly_entropy_top_k": 5}, "three likeliest"),
        ({"rejection_sample_method": "fly", "fly_window_size": 5}, "smaller than"),
        ({"prompt_lookup_min": 4, "prompt_lookup_max": 2}, "larger than prompt_lookup_max"),
        ({"num_speculative_tokens": 65}, "from 1 to 64.*128 in vLLM"),
        ({"num_speculative_tokens": 0}, "from 1 to 64"),
        ({"num_speculative_tokens": True}, "from 1 to 64"),
        ({"num_speculative_tokens": "5"}, "from 1 to 64"),
        ({"num_speculative_tokens": None}, "does not say num_speculative_tokens"),
        ({"num_speculative_tokens_per_batch_size": [[2, 4, 5]]}, "one text at a time"),
        ({"num_speculative_tokens_per_batch_size": "5"}, "one text at a time"),
        ({"num_speculative_token": 5}, "Did you mean num_speculative_tokens"),
        ({"method": "nrgam"}, "Did you mean ngram"),
        ({"zzz": 5}, "no field 'zzz'"),
    ],
)
def test_what_cannot_be_honoured_is_refused(given, words):
    with pytest.raises(Problem, match=words):
        read(**(NGRAM | given))


@pytest.mark.parametrize("name", SAMPLING)
def test_a_sampling_parameter_is_told_where_it_belongs(name):
    with pytest.raises(Problem, match=f"{name} is a sampling parameter") as problem:
        read(**NGRAM, **{name: 1})
    assert SAMPLING[name] in problem.value.remedy


@pytest.mark.parametrize("name", NO_EFFECT)
def test_a_field_without_effect_is_accepted_and_listed(name):
    (note,) = read(**NGRAM, **{name: True}).notes
    assert note.startswith(f"{name}: true has no effect here")


@pytest.mark.parametrize("name", AT_REST)
def test_a_field_that_would_change_results_is_refused_unless_it_is_at_rest(name):
    with pytest.raises(Problem, match=f"^{name}: 7 cannot be honoured") as problem:
        read(**NGRAM, **{name: 7})
    assert problem.value.remedy
    for value in AT_REST[name].values:
        (note,) = read(**NGRAM, **{name: value}).notes
        assert note.startswith(name)
    assert read(**NGRAM, **{name: None}).notes == ()


def test_fields_of_another_method_are_listed_as_vllm_lets_them_be():
    given = {"fly_window_size": 3, "quantization": "fp8", "suffix_decoding_max_tree_depth": 9}
    notes = read(**NGRAM, **given).notes
    assert [note.split(":")[0] for note in notes] == list(given)


def test_one_text_at_a_time_takes_its_entry_of_the_schedule():
    found = read(**NGRAM, num_speculative_tokens_per_batch_size=[[1, 4, 7], [5, 64, 2]])
    assert found.draft_length == 7
    assert "one text at a time" in found.notes[0]


def test_how_a_draft_draws_has_no_meaning_at_temperature_0():
    for how in ("greedy", "probabilistic"):
        assert read(**DRAFT, draft_sample_method=how).method_options == {}


def test_a_draft_that_draws_by_the_temperature_is_the_one_here_without_cuts():
    assert read(DRAWN, **DRAFT, draft_sample_method="probabilistic").method_options == {}


def test_a_draft_that_draws_otherwise_is_told_so():
    assert read(DRAWN, **DRAFT).method_options == {"draft_sampling": "argmax"}
    cut = Sampling(temperature=0.7, top_p=0.9)
    found = read(cut, **DRAFT, draft_sample_method="probabilistic").method_options
    assert found == {"draft_sampling": "own", "draft_temperature": 0.7}


@pytest.mark.parametrize(
    "given",
    [
        {"method": "mtp"},
        {"method": "eagle3", "model": "org/eagle3"},
        {"method": "draft_model", "model": "org/Small", "use_heterogeneous_vocab": True},
    ],
)
def test_every_draft_takes_its_likeliest_token_unless_told_otherwise(given):
    found = read(DRAWN, **given, num_speculative_tokens=1)
    assert found.method_options == {"draft_sampling": "argmax"}
    assert OFFERED[found.method].filled(found.method_options)["draft_sampling"] == "argmax"


@pytest.mark.parametrize(
    ("quantization", "precision", "notes"),
    [("bitsandbytes", "nf4", 0), ("gptq", None, 1), (None, None, 0)],
)
def test_the_drafts_numbers(quantization, precision, notes):
    found = read(**DRAFT, quantization=quantization)
    assert (found.draft_precision, len(found.notes)) == (precision, notes)
    with pytest.raises(Problem, match='quantization: "fp8" cannot be honoured'):
        read(**DRAFT, quantization="fp8")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"method": "ngram",\n "num": 5', r"not JSON.*line 2, column 10"),
        ("{method: ngram}", r"line 1, column 2"),
        ("", "not JSON"),
        ("[]", "no JSON object"),
        ('"ngram"', "no JSON object"),
        ('{"method": "ngram", "method": "suffix"}', "says 'method' twice"),
        ('{"num_speculative_tokens": NaN}', "holds NaN"),
        ('{"a":' * 100_000, "nested too deep|not JSON"),
        ("{}", "neither a method nor a model"),
        ('{"method": 5, "num_speculative_tokens": 2}', "method is 5; it has to be text"),
    ],
)
def test_what_is_no_config_is_refused_where_it_is_wrong(text, words):
    with pytest.raises(Problem, match=words):
        read_vllm(text, GREEDY)


def test_every_field_is_known_once():
    assert len(EVERY) == len(set(EVERY))
    assert not set(SAMPLING) & set(EVERY)
