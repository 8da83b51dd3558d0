"""vLLM's command: its JSON read back is the set-up, wherever all of it carries over."""

import json
import shlex

import msgspec
import pytest

from app.elsewhere.vllm import speculative_config, vllm
from app.elsewhere.vllm_config import read_vllm
from app.elsewhere.vllm_fields import EVERY, SAMPLING
from app.run.methods import METHODS
from app.run.rules import RULES

FIRST = {"shortest": 2, "longest": 4, "match": "first"}
DRAWN = {"temperature": 0.8, "seed": 5}
CARRIED = [
    {"method": "ngram", "method_options": FIRST},
    {"method": "ngram", "method_options": FIRST, "draft_length": 9, "rule": "block"},
    {"method": "ngram", "method_options": FIRST, "rule": "fly",
     "rule_options": {"window": 2, "reading": "vllm", "entropy": 0.4}},
    {"method": "ngram", "method_options": FIRST, "rule": "synthetic",
     "rule_options": {"length": 3.5}},
    {"method": "ngram", "method_options": FIRST, "rule": "synthetic",
     "rule_options": {"rates": "0.9, 0.5, 0.5, 0.25"}},
    {"method": "draft-model"},
    {"method": "draft-model", "draft_precision": "nf4"},
    {"method": "draft-model", "rule": "block", "sampling": DRAWN},
    {"method": "draft-model", "draft_precision": "bf16", "precision": "bf16"},
    {"method": "draft-model", "method_options": {"draft_sampling": "argmax"}, "sampling": DRAWN},
    {"method": "draft-model", "sampling": {**DRAWN, "top_k": 5},
     "method_options": {"draft_sampling": "own", "draft_temperature": 0.8}},
    {"method": "suffix", "method_options": {"depth": 24, "cached": 10_000}},
    {"method": "suffix", "method_options": {"depth": 9, "factor": 2.0, "least_probability": 0.3},
     "draft_length": 9},
    {"method": "tli", "sampling": {}},
    {"method": "mtp", "sampling": DRAWN},
    {"method": "mtp", "method_options": {"draft_sampling": "argmax"}, "sampling": DRAWN},
]  # fmt: skip


@pytest.mark.parametrize("sampling", [{}, DRAWN])
@pytest.mark.parametrize("fields", CARRIED)
def test_what_carries_over_comes_back_as_it_was(setup_with, fields, sampling):
    setup = setup_with(**{"sampling": sampling, **fields})
    settings = setup.settings
    config, changed = speculative_config(setup)
    assert changed == []
    found = read_vllm(json.dumps(config), settings.sampling)
    options = METHODS[settings.method].filled(settings.method_options)
    assert METHODS[found.method].filled(found.method_options) == options
    assert (found.method, found.draft_length) == (settings.method, settings.draft_length)
    rule = RULES[settings.rule]
    exact = settings.rule == "block" and settings.sampling.greedy  # which is the greedy rule then
    assert found.rule == ("exact" if exact else settings.rule)
    assert rule.filled(found.rule_options) == rule.filled(settings.rule_options)
    drafter = METHODS[settings.method].drafter
    assert found.model == ("org/Small" if drafter == "model" else "")
    if settings.draft_precision == "nf4":
        assert found.draft_precision == "nf4"
    again = {name: value for name, value in config.items() if name in EVERY}
    assert again == config


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}',
         {"prompt_lookup_min": 4}),
        ('{"method": "draft_model", "model": "org/Small", "num_speculative_tokens": 3}', {}),
        ('{"model": "org/Small", "num_speculative_tokens": 3, "draft_sample_method": '
         '"probabilistic", "rejection_sample_method": "block"}', {"method": "draft_model"}),
    ],
)  # fmt: skip
def test_vllms_json_comes_back_with_its_defaults_said(setup_with, text, kept):
    sampling = DRAWN if "probabilistic" in text else {}
    found = read_vllm(text, setup_with(sampling=sampling).settings.sampling)
    setup = setup_with(
        method=found.method,
        method_options=found.method_options,
        draft_length=found.draft_length,
        rule=found.rule,
        rule_options=found.rule_options,
        sampling=sampling,
    )
    config, changed = speculative_config(setup)
    assert changed == []
    assert config == json.loads(text) | kept


def test_the_command_can_be_run_and_a_request_be_sent(setup_with):
    setup = setup_with(
        method="draft-model",
        precision="bf16",
        context_length=4096,
        stop_strings=("it's", "b"),
        ignore_end_of_text=True,
        sampling={**DRAWN, "top_k": 20, "repetition_penalty": 1.1},
    )
    command, request = vllm(setup).text.split("\n# with each request: ")
    words = shlex.split(command)
    assert words[:5] == ["vllm", "serve", "org/Big", "--dtype", "bfloat16"]
    assert words[5:8] == ["--max-model-len", "4096", "--speculative-config"]
    assert json.loads(words[8])["model"] == "org/Small"
    asked = json.loads(request)
    assert asked == {
        "temperature": 0.8, "seed": 5, "top_k": 20, "repetition_penalty": 1.1, "max_tokens": 256,
        "stop": ["it's", "b"], "ignore_eos": True,
    }  # fmt: skip
    assert set(asked) <= set(SAMPLING)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"method_options": {"match": "last"}}, "first of several places of a match"),
        ({"rule": "coupled", "sampling": DRAWN}, "no counterpart of the rule coupled"),
        ({"rule": "typical", "sampling": DRAWN}, "no counterpart of the rule typical"),
        ({"rule": "fly", "rule_options": {"reading": "paper"}}, "no counterpart of the rule fly"),
        ({"draft_length_policy": "best"}, "policy best is left out"),
        ({"precision": "int8"}, "does not hold weights in int8"),
        ({"sampling": DRAWN}, "random stream of its own"),
        ({"sampling": {**DRAWN, "min_p": 0.1, "top_p": 0.9}}, "min-p before"),
        (
            {"method": "draft-model", "sampling": {**DRAWN, "top_p": 0.9}},
            "by the temperature alone",
        ),
        ({"method": "draft-model", "draft_precision": "fp32", "precision": "nf4"}, "not in fp32"),
        ({"draft_length": 0}, "0 means no speculation"),
        ({"method": "suffix", "method_options": {"offset": 2.0}}, "no tokens besides"),
        ({"method": "suffix", "method_options": {"keep": False}}, "keeps every text"),
        ({"method": "tli", "sampling": DRAWN}, "takes its likeliest token"),
        (
            {
                "method": "draft-model",
                "sampling": DRAWN,
                "method_options": {"draft_sampling": "own", "draft_temperature": 0.5},
            },
            "not by one of its own",
        ),
    ],
)
def test_what_does_not_carry_over_is_told(setup_with, fields, words):
    setup = setup_with(**{"method": "ngram", "method_options": FIRST, **fields})
    if "method" in fields:
        setup = setup_with(**fields)
    assert any(words in line for line in vllm(setup).not_carried)


@pytest.mark.parametrize(
    ("draft", "method"),
    [
        ("yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "eagle3"),
        ("AngelSlim/Qwen3-8B_eagle3", "eagle3"),
        ("yuhuili/EAGLE-LLaMA3-Instruct-8B", "eagle"),
    ],
)
def test_a_published_head_comes_back_as_it_was(setup_with, draft, method):
    setup = msgspec.structs.replace(setup_with(method="head"), draft=draft)
    config, changed = speculative_config(setup)
    assert config == {"method": method, "model": draft, "num_speculative_tokens": 4}
    assert changed == []
    assert read_vllm(json.dumps(config), setup.settings.sampling).method == "head"


def test_a_head_of_this_programs_own_is_not_read_there(setup_with):
    found = vllm(msgspec.structs.replace(setup_with(method="head"), draft="path/to/my-head"))
    assert found.text == ""
    assert "with 'path/to/my-head': it reads published EAGLE heads" in found.not_carried[0]


@pytest.mark.parametrize(
    ("precision", "flags"),
    [
        ("fp32", ["--dtype", "float32"]),
        ("bf16", ["--dtype", "bfloat16"]),
        ("fp16", ["--dtype", "float16"]),
        ("nf4", ["--dtype", "bfloat16", "--quantization", "bitsandbytes"]),
        ("int8", []),
        ("llm-int8", []),
        ("fp4", []),
        ("GPTQ, 4 bits", []),
        ("", []),
    ],
)
def test_the_targets_precision_is_carried_or_told(setup_with, precision, flags):
    setup = msgspec.structs.replace(setup_with(method="nothing"), precision=precision)
    found = vllm(setup)
    words = shlex.split(found.text.split("\n")[0])
    assert words == ["vllm", "serve", "org/Big", *flags]
    told = [line for line in found.not_carried if "held" in line or "hold" in line]
    assert bool(told) == (precision in ("int8", "llm-int8", "fp4", ""))


@pytest.mark.parametrize(
    ("target", "draft", "quantised", "told"),
    [
        ("fp32", "nf4", True, "in the target's fp32 there, not in bf16"),
        ("bf16", "nf4", True, ""),
        ("nf4", "nf4", True, ""),
        ("nf4", "bf16", False, ""),
        ("", "nf4", True, ""),
        ("fp32", "bf16", False, "not in bf16"),
        ("fp32", "llm-int8", False, "not in llm-int8"),
    ],
)
def test_the_drafts_precision_is_carried_or_told(setup_with, target, draft, quantised, told):
    setup = setup_with(method="draft-model")
    setup = msgspec.structs.replace(setup, precision=target, draft_precision=draft)
    config, changed = speculative_config(setup)
    assert (config.get("quantization") == "bitsandbytes") is quantised
    assert bool(changed) == bool(told)
    assert told in " ".join(changed)


def test_plain_decoding_needs_no_config(setup_with):
    found = vllm(setup_with(method="nothing", precision="fp32"))
    assert "--speculative-config" not in found.text
    assert found.not_carried == []


def test_a_method_without_a_counterpart_gives_no_command(setup_with):
    found = vllm(setup_with(method="ngram-else-head"))
    assert found.text == ""
    assert found.not_carried == ["vLLM has no counterpart of the method N-gram, else head."]
