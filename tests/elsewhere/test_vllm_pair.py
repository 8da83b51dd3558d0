"""Which pair of the catalogue vLLM's JSON means, and the settings that it makes."""

import json

import pytest

from app.elsewhere.vllm_pair import in_vllm_words
from app.library.catalogue import Catalogue
from app.library.entries import FolderSource, HubSource, ModelEntry, PairEntry
from app.run.problems import Problem
from app.run.settings import RunSettings, Sampling


def model(name, source):
    return ModelEntry(name, name, source)


def pair(name, target, **more):
    return PairEntry(name, name, target, **({"method": "ngram"} | more))


@pytest.fixture
def catalogue(tmp_path):
    models = (
        model("big", HubSource("org/Big", "main")),
        model("other", HubSource("org/Other", "main")),
        model("small", HubSource("org/Small", "0123abc")),
        model("mine", FolderSource(str(tmp_path / "mine"))),
        model("head", FolderSource(str(tmp_path / "head"))),
    )
    pairs = (
        pair("plain", "big"),
        pair("other-small", "other", draft="small", method="draft-model"),
        pair("big-small", "big", draft="small", method="draft-model", rule="block"),
        pair("big-mine", "big", draft="mine", method="draft-model"),
        pair("big-head", "big", head="head", method="head"),
    )
    return Catalogue(models, pairs, "plain")


def told(catalogue, asked=None, /, *, sampling=Sampling(), precision=None, **fields):
    settings = RunSettings("plain", "Hello", sampling=sampling, draft_precision=precision)
    text = json.dumps({"num_speculative_tokens": 3, **fields})
    return in_vllm_words(settings, text, catalogue, asked=asked)


def test_settings_are_vllms_and_the_rest_stays(catalogue):
    found, notes = told(catalogue, method="ngram", rejection_sample_method="block")
    assert notes == ()
    assert (found.pair, found.prompt, found.method) == ("plain", "Hello", "ngram")
    assert (found.draft_length, found.draft_length_policy, found.rule) == (3, "fixed", "block")
    assert found.method_options["match"] == "first"


@pytest.mark.parametrize("word", ["small", "org/Small", "ORG/small"])
def test_a_draft_is_found_by_its_name_or_repository(catalogue, word):
    found, notes = told(catalogue, model=word)
    # Of two pairs with it, the one whose target is that of the default pair.
    assert found.pair == "big-small"
    assert found.rule == "exact"
    assert notes == ("The pair is big-small.",)


def test_a_draft_is_found_by_its_folder(catalogue, tmp_path):
    assert told(catalogue, model=str(tmp_path / "mine"))[0].pair == "big-mine"


def test_a_head_is_looked_for_among_heads(catalogue, tmp_path):
    found = told(catalogue, method="eagle3", model=str(tmp_path / "head"))[0]
    assert (found.pair, found.method) == ("big-head", "head")
    with pytest.raises(Problem, match="No pair of the catalogue has 'small' as its head"):
        told(catalogue, method="eagle3", model="small")


def test_the_pair_that_was_asked_for_must_have_the_draft(catalogue):
    assert told(catalogue, "other-small", model="small")[0].pair == "other-small"
    with pytest.raises(Problem, match="'plain' has no draft 'small'") as problem:
        told(catalogue, "plain", model="small")
    assert "other-small, big-small" in problem.value.remedy


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"model": "org/smal"}, "no model 'org/smal'. Did you mean 'org/Small'"),
        ({"model": "org/Big"}, "No pair of the catalogue has 'org/Big' as its draft"),
        ({"method": "draft_model"}, "names no model"),
        ({"model": "small", "revision": "main"}, "has revision 0123abc"),
        ({"model": "mine", "revision": "main"}, "has no revisions"),
    ],
)
def test_a_draft_that_there_is_not_is_refused(catalogue, fields, words):
    with pytest.raises(Problem, match=words):
        told(catalogue, **fields)


def test_the_revision_of_the_catalogue_is_honoured(catalogue):
    assert told(catalogue, model="small", revision="0123abc")[0].pair == "big-small"


def test_two_precisions_of_the_draft_are_refused(catalogue):
    bits = {"model": "small", "quantization": "bitsandbytes"}
    assert told(catalogue, **bits)[0].draft_precision == "nf4"
    assert told(catalogue, precision="nf4", **bits)[0].draft_precision == "nf4"
    with pytest.raises(Problem, match="in bf16, and by the speculative config in nf4"):
        told(catalogue, precision="bf16", **bits)


def test_models_beside_a_method_that_asks_none_are_not_looked_for(catalogue):
    assert told(catalogue, method="ngram", model="ngram")[0].pair == "plain"
