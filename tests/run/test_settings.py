"""What may be asked for, and what is refused before anything runs."""

import math

import pytest

from app.run.problems import Problem
from app.run.settings import RunSettings, Sampling


@pytest.mark.parametrize(
    "changes",
    [
        {"temperature": math.nan},
        {"temperature": -1.0},
        {"temperature": math.inf},
        {"top_k": -1},
        {"top_k": 10**400},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"min_p": -0.1},
        {"min_p": 1.1},
        # Either would make the logits of a seen token infinite in fp32.
        {"repetition_penalty": 0.0},
        {"repetition_penalty": 1e-300},
        {"presence_penalty": 1e300},
        {"presence_penalty": math.nan},
        # A draw knows 64 bits of the seed: a longer one would repeat a shorter one's text.
        {"seed": 2**63},
        {"seed": -(2**63) - 1},
        {"seed": 10**400},
    ],
)
def test_a_sampling_value_outside_its_range_is_named(changes):
    with pytest.raises(Problem) as caught:
        Sampling(**changes).check()
    assert next(iter(changes)).replace("_", " ").split()[0] in caught.value.message.replace(
        "-", " "
    )


@pytest.mark.parametrize(
    "changes",
    [{"temperature": 1e6}, {"seed": -1}, {"seed": 2**63 - 1}, {"top_k": 2**31 - 1}, {"min_p": 1.0}],
)
def test_a_sampling_value_at_its_edge_is_taken(changes):
    Sampling(**changes).check()


@pytest.mark.parametrize(
    "changes",
    [
        {"draft_length": 65},
        {"draft_length": -1},
        {"max_new_tokens": -1},
        {"repetitions": 0},
        {"context_length": 0},
        {"stop_strings": ("a", "")},
    ],
)
def test_a_setting_outside_its_range_is_refused(changes):
    with pytest.raises(Problem):
        RunSettings(pair="p", prompt="x", **changes).check()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"draft_length": 99}, "draft length is 99; it has to be 0 or more, at most 64."),
        (
            {"max_new_tokens": 99999999},
            "max new tokens is 99999999; it has to be 0 or more, at most 1000000.",
        ),
        ({"repetitions": 0}, "repeats is 0; it has to be 1 or more, at most 1000."),
    ],
)
def test_a_setting_that_is_refused_is_told_with_its_limits_in_full(changes, told):
    with pytest.raises(Problem) as caught:
        RunSettings(pair="p", prompt="x", **changes).check()
    assert caught.value.message == told


def test_a_top_p_of_zero_is_told_to_be_too_little():
    with pytest.raises(Problem) as caught:
        Sampling(top_p=0.0).check()
    assert caught.value.message == "top-p is 0.0; it has to be above 0, at most 1."
