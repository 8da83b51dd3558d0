"""The shapes for random weights: their sizes are those of the models that they are named for."""

import pytest

from app.library.random_shapes import RANDOM_SHAPES, draft_shape, random_shape
from app.run.problems import Problem


@pytest.mark.parametrize(
    ("name", "weights"),
    [  # as the models' own cards and files tell them
        ("llama-8b", 8_030_261_248),
        ("llama-1b", 1_235_814_400),
        ("qwen-0.5b", 494_032_768),
    ],
)
def test_weights_are_as_many_as_the_models_have(name, weights):
    assert random_shape(name).parameters == weights
    assert random_shape(name).sizes.parameters == weights


def test_heads_are_as_wide_as_the_models_have_them():
    widths = {name: RANDOM_SHAPES[name].head_size for name in ("llama-8b", "llama-1b", "qwen-0.5b")}
    assert widths == {"llama-8b": 128, "llama-1b": 64, "qwen-0.5b": 64}


@pytest.mark.parametrize(
    ("target", "draft"),
    [
        ("llama-8b", "llama-1b"),
        ("llama-1b", None),
        ("qwen-0.5b", None),
        ("tiny", "tiny-draft"),
        ("tiny-draft", None),
    ],
)
def test_the_next_smaller_shape_of_the_same_ids_drafts(target, draft):
    found = draft_shape(random_shape(target), None)
    assert (found and found.name) == draft


def test_a_draft_can_be_named_or_left_out():
    target = random_shape("llama-1b")
    assert draft_shape(target, "llama-1b") is target
    assert draft_shape(random_shape("llama-8b"), "none") is None


@pytest.mark.parametrize(("asked", "said"), [("qwen-0.5b", "151936 ids"), ("qwen-7b", "no shape")])
def test_a_draft_that_reads_other_ids_or_is_not_known_is_refused(asked, said):
    with pytest.raises(Problem, match=said):
        draft_shape(random_shape("llama-8b"), asked)
