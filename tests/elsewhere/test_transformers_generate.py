"""The program for transformers: it can be run, and its arguments are those that there are."""

import ast
import inspect

import pytest
import torch
import transformers
from transformers import GenerationConfig
from transformers.generation.utils import GenerationMixin

from app.elsewhere.transformers_generate import RELEASE, generate_arguments, transformers_generate
from app.models.bits_and_bytes import quantisation
from app.run.draft_lengths import LENGTH_POLICIES
from app.run.methods import METHODS
from app.run.rules import RULES

DRAWN = {"temperature": 0.8, "top_p": 0.9, "seed": 5}
ELSE = {
    "sampling": {**DRAWN, "top_k": 7, "min_p": 0.1, "repetition_penalty": 1.2},
    "stop_strings": ("it's",),
    "system": "Be short.",
}
OF_GENERATE = {"assistant_model", "tokenizer", "assistant_tokenizer"}
"""What `generate` takes beside the fields of its config; those that come by **kwargs too."""


def call_of(text):
    """The keywords of the call of `generate`, as they stand in the program."""
    tree = ast.parse(text)
    (call,) = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "generate"
    ]
    return {word.arg: word.value for word in call.keywords if word.arg}


def _literal(node):
    """The value that stands there; None for what the program computes."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def test_the_words_were_read_in_the_release_that_is_installed():
    assert transformers.__version__ == RELEASE


@pytest.mark.parametrize("more", [{}, ELSE, {"raw": True, "precision": "nf4"}])
@pytest.mark.parametrize("policy", LENGTH_POLICIES)
@pytest.mark.parametrize("method", METHODS)
def test_every_argument_is_a_field_of_its_config(setup_with, method, policy, more):
    text = transformers_generate(setup_with(method=method, draft_length_policy=policy, **more)).text
    if not text:
        return
    fields = set(GenerationConfig().to_dict()) | OF_GENERATE
    assert set(call_of(text)) <= fields
    assert "assistant_model" in inspect.signature(GenerationMixin.generate).parameters
    own = [name for name in call_of(text) if name not in OF_GENERATE]
    given = {name: value for name in own if (value := _literal(call_of(text)[name])) is not None}
    GenerationConfig(**given).validate()


def test_a_draft_model(setup_with):
    arguments, changed = generate_arguments(setup_with(method="draft-model", draft_length=6))
    assert changed == []
    assert repr(arguments.pop("assistant_model")) == "assistant"
    assert arguments == {
        "max_new_tokens": 256, "num_assistant_tokens": 6,
        "num_assistant_tokens_schedule": "constant", "assistant_confidence_threshold": 0.0,
        "do_sample": False,
    }  # fmt: skip


def test_ngrams_as_transformers_looks_them_up_carry_over(setup_with):
    options = {"shortest": 1, "longest": 3, "match": "first"}
    setup = setup_with(method="ngram", method_options=options, draft_length=7)
    arguments, changed = generate_arguments(setup)
    assert changed == []
    assert arguments["prompt_lookup_num_tokens"] == 7
    assert arguments["max_matching_ngram_size"] == 3


def test_the_ensemble_carries_over_with_its_weight(setup_with):
    options = {"weight": 0.7}
    setup = setup_with(method="draft-model", rule="ensemble", rule_options=options, sampling=DRAWN)
    arguments, changed = generate_arguments(setup)
    assert arguments["assistant_ensemble_weight"] == 0.7
    assert changed == []


def test_an_early_exit_takes_a_third_of_the_layers_unless_told_otherwise(setup_with):
    told, _ = generate_arguments(setup_with(method="early-exit", method_options={"exit_layer": 3}))
    assert told["assistant_early_exit"] == 3
    text = transformers_generate(setup_with(method="early-exit")).text
    assert "assistant_early_exit=max(1, model.config.num_hidden_layers // 3)" in text


def test_the_heuristic_begins_where_it_does_here(setup_with):
    options = {"start": 3}
    arguments, changed = generate_arguments(
        setup_with(
            method="draft-model", draft_length_policy="heuristic", draft_length_options=options
        )
    )
    assert arguments["num_assistant_tokens"] == 3
    assert arguments["num_assistant_tokens_schedule"] == "heuristic_transient"
    assert "may grow past 4" in changed[0]


def test_sampling_is_in_the_call(setup_with):
    call = call_of(transformers_generate(setup_with(method="draft-model", **ELSE)).text)
    values = {name: getattr(call[name], "value", None) for name in call}
    assert values["do_sample"] is True
    assert (values["temperature"], values["top_k"], values["top_p"]) == (0.8, 7, 0.9)
    assert (values["min_p"], values["repetition_penalty"]) == (0.1, 1.2)
    assert ast.literal_eval(call["stop_strings"]) == ["it's"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"method": "ngram"}, "not 2 at least"),
        ({"method": "ngram"}, "first place of a match"),
        ({"method": "draft-model", "rule": "block", "sampling": DRAWN}, "rule block"),
        ({"method": "draft-model", "rule": "typical", "sampling": DRAWN}, "lossless, unlike here"),
        ({"method": "draft-model", "draft_length_policy": "entropy"}, "entropy is left out"),
        ({"method": "nothing", "sampling": {"presence_penalty": 1.0}}, "no presence penalty"),
        ({"method": "nothing", "sampling": DRAWN}, "another text"),
        ({"method": "nothing", "ignore_end_of_text": True}, "ends at an end-of-text token"),
        ({"method": "nothing", "precision": "int8"}, "int8"),
    ],
)
def test_what_does_not_carry_over_is_told(setup_with, fields, words):
    told = transformers_generate(setup_with(**fields)).not_carried
    assert any(words in line for line in told)


@pytest.mark.parametrize("precision", ["nf4", "fp4", "llm-int8"])
def test_a_model_is_quantised_there_as_it_is_here(setup_with, precision):
    setup = setup_with(method="draft-model", precision="fp32", draft_precision=precision)
    found = transformers_generate(setup)
    target, draft = (loading_of(found.text, name) for name in ("model", "assistant"))
    assert target["dtype"] == "torch.float32"
    assert "quantization_config" not in target
    asked = {"torch": torch, "BitsAndBytesConfig": transformers.BitsAndBytesConfig}
    config = eval(draft["quantization_config"], asked)
    assert config.to_dict() == quantisation(precision, torch.device("cpu")).to_dict()
    assert draft["dtype"] == "torch.bfloat16"
    assert not any("held" in line or "hold" in line for line in found.not_carried)


def test_a_precision_that_the_machine_chooses_is_told_of(setup_with):
    found = transformers_generate(setup_with(method="draft-model", draft_precision="nf4"))
    assert "dtype" not in loading_of(found.text, "model")
    assert "quantization_config" in loading_of(found.text, "assistant")
    assert any("left to the machine here" in line for line in found.not_carried)


def loading_of(text, name):
    """How a model is loaded in the program: keywords and their words."""
    (call,) = [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name
    ]
    return {word.arg: ast.unparse(word.value) for word in call.keywords}


@pytest.mark.parametrize("rule", [name for name, rule in RULES.items() if rule.lossless])
def test_at_temperature_0_no_lossless_rule_makes_a_difference(setup_with, rule):
    assert generate_arguments(setup_with(method="draft-model", rule=rule))[1] == []


@pytest.mark.parametrize("method", ["draft-model", "early-exit", "mtp"])
def test_a_draft_that_draws_by_settings_of_its_own_is_told_of(setup_with, method):
    told = []
    for how in ("target", "argmax"):
        setup = setup_with(method=method, method_options={"draft_sampling": how}, sampling=DRAWN)
        changed = generate_arguments(setup)[1]
        told.append([line for line in changed if "by the settings of the target" in line])
    assert (told[0], len(told[1])) == ([], 1)
