"""The figures of random weights, and how they stand to their goals: from numbers made by hand."""

import msgspec
import pytest

from app.run.events import Environment, ModelFacts
from app.run.problems import Problem
from app.run.random_bench import RandomBench, RandomMeasured, Timed
from app.run.random_figures import random_figures

FACTS = ModelFacts(
    name="llama-8b", folder="", precision="nf4", precision_note="", device="cuda:0",
    parameters=8, weight_bytes=5, vocabulary=9, context_length=64, attention="sdpa",
    rewinds=True, rewind_note="", rows_independent=True, rows_note="",
)  # fmt: skip
WANTED = RandomBench("llama-8b", draft="llama-1b", precision="nf4", device="cuda:0", repeats=2)
MEASURED = RandomMeasured(
    wanted=WANTED,
    environment=Environment("0", "3", "here", "cpu", "card", 1, {}),
    target=FACTS,
    draft=FACTS,
    read_bytes=5_000_000_000,
    peak_bytes=None,
    copied_bytes=1 << 30,
    bandwidth=4e12,
    context=256,
    passes={1: 0.002, 5: 0.0025, 9: 0.004},
    pass_repeats=9,
    draft_step=0.0005,
    busy=0.0015,
    # 128 tokens after the first, in 0.2 s and in 0.25 s: 640 and 512 a second of 800 at most.
    plain=(
        Timed(129, 0.21, 0.2, 0.006, 128),
        Timed(129, 0.26, 0.25, 0.005, 128),
    ),
    generate=(Timed(129, 0.63), Timed(129, 0.65)),
    simulated=(
        Timed(129, 0.09, 0.08, 0.008, 42, accepted=90, tested=115),
        Timed(129, 0.11, 0.10, 0.004, 43, accepted=85, tested=118),
    ),
    same_tokens=129,
)


def figures(**changes):
    found = random_figures(msgspec.structs.replace(MEASURED, **changes))
    return {one.name: one for one in found}


def wanting(**changes):
    return figures(wanted=msgspec.structs.replace(WANTED, **changes))


def test_values_follow_their_definitions():
    values = {name: one.value for name, one in figures().items()}
    assert values == pytest.approx(
        {
            "bandwidth": 4e12,
            "read_bytes": 5e9,
            "limit": 800.0,
            "plain_speed": (640 + 512) / 2,
            "share_of_limit": (0.8 + 0.64) / 2,
            "generate_speed": (129 / 0.63 + 129 / 0.65) / 2,
            "over_generate": (3.0 + 2.5) / 2,
            "overhead_plain": (0.03 + 0.02) / 2,
            "idle_plain": (1 - 128 * 0.0015 / 0.2 + 1 - 128 * 0.0015 / 0.25) / 2,
            "pass_seconds": 0.002,
            "wide_pass": 1.25,
            "idle_share": 0.25,
            "draft_step": 0.0005,
            "simulated_kept": 175 / 233,
            "simulated_speed": (1600 + 1280) / 2,
            "simulated_speedup": 2.5,
            "overhead_simulated": (0.1 + 0.04) / 2,
        }
    )


def test_a_range_is_told_of_several_and_of_one_none():
    found = figures()
    assert found["plain_speed"].text == "576.0 tokens/s (512.0 to 640.0)"
    assert found["bandwidth"].text == "4000.00 GB/s"
    assert found["read_bytes"].text == "5.0 GB"
    assert found["draft_step"].text == "0.50 ms"
    assert found["wide_pass"].text == "1.25"
    assert found["overhead_plain"].text == "2.5 % (2.0 to 3.0)"
    once = figures(plain=MEASURED.plain[:1], generate=MEASURED.generate[:1])
    assert once["over_generate"].text == "3.00×"


def test_goals_that_are_met():
    verdicts = {name: one.verdict for name, one in figures().items() if one.goal}
    assert verdicts == {
        "share_of_limit": "met",
        "over_generate": "met",
        "wide_pass": "met",
        "overhead_plain": "met",
        "overhead_simulated": "not met",
        "simulated_speedup": "met",
    }


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("share_of_limit", {"bandwidth": 4.9e12}),
        ("over_generate", {"generate": (Timed(129, 0.41), Timed(129, 0.5))}),
        ("wide_pass", {"passes": {1: 0.002, 5: 0.00261}}),
        ("simulated_speedup", {"simulated": (Timed(129, 0.2, 0.11), Timed(129, 0.2, 0.13))}),
    ],
)
def test_goals_that_are_not_met(name, changes):
    assert figures(**changes)[name].verdict == "not met"


def test_the_limits_of_goals_count_as_met():
    assert figures(bandwidth=4.8e12)["share_of_limit"].value == pytest.approx(0.6)
    assert figures(passes={1: 0.002, 5: 0.0026})["wide_pass"].verdict == "met"


@pytest.mark.parametrize("other", [{"target": "llama-1b"}, {"precision": "bf16"}])
def test_goals_of_the_large_model_are_not_judged_by_others(other):
    found = wanting(**other)
    assert found["share_of_limit"].verdict == found["over_generate"].verdict == "not measured"
    assert found["share_of_limit"].value is not None


def test_goals_of_a_card_are_not_judged_on_a_processor():
    found = figures(target=msgspec.structs.replace(FACTS, device="cpu"))
    assert found["share_of_limit"].verdict == "not measured"


@pytest.mark.parametrize("other", [{"acceptance": 0.8}, {"draft_length": 5}])
def test_the_goal_of_speculation_is_for_one_acceptance_and_length(other):
    assert wanting(**other)["simulated_speedup"].verdict == "not measured"


def test_what_was_not_measured_says_so():
    found = figures(draft=None, draft_step=None, simulated=(), busy=None)
    for name in ("draft_step", "idle_share", "idle_plain", "simulated_speed", "simulated_speedup"):
        assert (found[name].value, found[name].text) == (None, "not measured")
    assert found["overhead_simulated"].verdict == "not measured"


def test_simulated_acceptance_stands_in_every_label_that_depends_on_it():
    of_guesses = {"simulated_kept", "simulated_speed", "simulated_speedup", "overhead_simulated"}
    told = {name for name, one in figures().items() if "simulated acceptance" in one.label}
    assert told == of_guesses


def test_a_pass_whose_kernels_took_longer_than_it_is_never_idle():
    assert figures(busy=0.003)["idle_share"].value == 0.0


@pytest.mark.parametrize(
    "changes",
    [{"acceptance": 1.1}, {"draft_length": 0}, {"draft_length": 65}, {"tokens": 1}, {"repeats": 0}],
)
def test_values_out_of_their_range_are_refused(changes):
    with pytest.raises(Problem, match="has to be from"):
        msgspec.structs.replace(WANTED, **changes).check()
