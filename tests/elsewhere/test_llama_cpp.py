"""llama-server's flags: those that its source has, and what is otherwise there."""

import shlex

import msgspec
import pytest

from app.elsewhere.llama_cpp import llama_cpp

# Read in llama.cpp's common/arg.cpp and docs/speculative.md, by hand.
FLAGS = {
    "-m", "-md", "--spec-type", "--spec-draft-n-max", "--spec-ngram-simple-size-n",
    "--spec-ngram-simple-size-m", "--spec-synth-len", "--spec-synth-rates", "--temp", "--top-k",
    "--top-p", "--min-p", "--seed", "--repeat-penalty", "--presence-penalty", "--samplers",
    "--ignore-eos", "-n", "-c",
}  # fmt: skip
DRAWN = {"temperature": 0.8, "top_p": 0.9, "seed": 5}


def flags_of(setup):
    words = shlex.split(llama_cpp(setup).text)
    assert words[0] == "llama-server"
    flags, name = {}, ""
    for word in words[1:]:
        if word.startswith("-"):
            name, flags[word] = word, ""
        else:
            flags[name] = word
    assert set(flags) <= FLAGS
    return flags


def test_a_draft_model(setup_with):
    flags = flags_of(setup_with(method="draft-model", draft_length=6, context_length=512))
    assert flags == {
        "-m": "path/to/Big.gguf", "-md": "path/to/Small.gguf", "--spec-type": "draft-simple",
        "--spec-draft-n-max": "6", "--temp": "0", "-n": "256", "-c": "512",
    }  # fmt: skip


def test_ngrams(setup_with):
    options = {"shortest": 3, "longest": 5}
    flags = flags_of(setup_with(method="ngram", method_options=options, draft_length=6))
    assert flags["--spec-type"] == "ngram-simple"
    assert flags["--spec-ngram-simple-size-n"] == "3"
    assert flags["--spec-ngram-simple-size-m"] == "6"


def test_published_heads(setup_with):
    setup = setup_with(method="ngram-else-head", draft_length=6)
    setup = msgspec.structs.replace(setup, draft="org/Big_eagle3")
    flags = flags_of(setup)
    assert flags["-md"] == "path/to/Big_eagle3.gguf"
    assert flags["--spec-type"] == "ngram-simple,draft-eagle3"
    assert (flags["--spec-draft-n-max"], flags["--spec-ngram-simple-size-m"]) == ("6", "6")
    alone = msgspec.structs.replace(
        setup, settings=msgspec.structs.replace(setup.settings, method="head")
    )
    assert flags_of(alone)["--spec-type"] == "draft-eagle3"


@pytest.mark.parametrize("method", ["draft-model", "head", "mtp"])
def test_a_draft_that_takes_its_likeliest_token_is_the_same_there(setup_with, method):
    told = []
    for how in ("target", "argmax"):
        options = {"draft_sampling": how}
        setup = setup_with(method=method, method_options=options, sampling=DRAWN)
        setup = msgspec.structs.replace(setup, draft="org/Big_eagle3")
        told.append([line for line in llama_cpp(setup).not_carried if "likeliest" in line])
    assert (len(told[0]), told[1]) == (1, [])


def test_sampling_keeps_the_order_that_it_has_here(setup_with):
    sampling = {**DRAWN, "top_k": 20, "min_p": 0.05, "presence_penalty": 0.5}
    flags = flags_of(setup_with(method="nothing", sampling=sampling, ignore_end_of_text=True))
    assert flags["--samplers"] == "penalties;temperature;top_k;top_p;min_p"
    assert (flags["--temp"], flags["--top-k"], flags["--top-p"]) == ("0.8", "20", "0.9")
    assert (flags["--min-p"], flags["--seed"], flags["--presence-penalty"]) == ("0.05", "5", "0.5")
    assert flags["--repeat-penalty"] == "1"
    assert "--ignore-eos" in flags


@pytest.mark.parametrize(
    ("options", "flag", "value"),
    [
        ({"length": 2.5}, "--spec-synth-len", "2.5"),
        ({"rates": "0.9, 0.5"}, "--spec-synth-rates", "0.9,0.5"),
    ],
)
def test_synthetic_acceptance(setup_with, options, flag, value):
    setup = setup_with(method="ngram", rule="synthetic", rule_options=options, draft_length=2)
    assert flags_of(setup)[flag] == value


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"method": "draft-model", "sampling": DRAWN}, "takes its likeliest token"),
        ({"method": "ngram", "sampling": DRAWN}, "no counterpart of the rule exact"),
        ({"method": "ngram", "rule": "typical", "sampling": DRAWN}, "lossless, unlike here"),
        ({"method": "ngram", "method_options": {"match": "first"}}, "The first place"),
        ({"method": "ngram", "draft_length_policy": "entropy"}, "policy entropy is left out"),
        ({"method": "ngram", "draft_length_policy": "confidence"}, "--spec-draft-p-min"),
        ({"method": "ngram", "stop_strings": ("a",)}, "Stop strings go with each request"),
        ({"method": "ngram", "sampling": {"repetition_penalty": 1.1}}, "64 tokens back"),
        ({"method": "nothing"}, "reads GGUF files"),
    ],
)
def test_what_does_not_carry_over_is_told(setup_with, fields, words):
    assert any(words in line for line in llama_cpp(setup_with(**fields)).not_carried)


@pytest.mark.parametrize("rule", ["sample-match", "greedy"])
def test_its_own_rule_is_no_difference(setup_with, rule):
    sampling = DRAWN if rule == "sample-match" else {}
    told = llama_cpp(setup_with(method="ngram", rule=rule, sampling=sampling)).not_carried
    assert not any("rule" in line for line in told)


def test_a_method_without_a_counterpart_gives_no_command(setup_with):
    assert llama_cpp(setup_with(method="ngram-else-head")).text == ""
