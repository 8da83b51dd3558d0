"""Whether a run fits, and what would make it fit: the first change that costs a person least."""

import msgspec
import pytest

from app.library.entries import PairEntry
from app.library.fitting import fit
from app.library.memory import Plan, estimate
from app.library.memory_plan import PairSizes, Wish, plan_of
from app.library.model_size import size_of_shape
from app.library.shape import Shape
from app.run.preparation import DeviceMemory

SHAPE = Shape(
    parameters=1_200_000_000,
    layers=16,
    hidden=2048,
    heads=32,
    key_value_heads=32,
    head_size=64,
    intermediate=8192,
    vocabulary=32_000,
    tied=True,
    context_length=8192,
)
SIZE = size_of_shape(SHAPE)
PLAN = Plan(
    target=SIZE,
    precision="bf16",
    device="cuda:0",
    draft=SIZE,
    draft_precision="bf16",
    drafter="model",
    tokens=4096,
)


def needs(**changes):
    return estimate(msgspec.structs.replace(PLAN, **changes))[0].total


def card(free):
    return DeviceMemory("cuda:0", "Card", free, 80_000_000_000)


def test_what_is_free_decides():
    total = needs()
    assert fit(PLAN, [card(2 * total)]).verdict == "fits"
    assert fit(PLAN, [card(total)]).verdict == "tight"
    assert fit(PLAN, [card(total - 1)]).verdict == "does not fit"
    assert fit(PLAN, []).verdict == "fits"
    assert "not known" in fit(PLAN, []).sentence
    assert "that are free on Card." in fit(PLAN, [card(2 * total)]).sentence


ORDER = {
    "a context of 2,048 tokens": {"tokens": 2048},
    "a context of 1,024 tokens": {"tokens": 1024},
    "a context of 512 tokens": {"tokens": 512},
    "a run in the terminal, whose lanes go one after the other": {"at_once": False},
    "the draft model in nf4": {"draft_precision": "nf4"},
    "the target in nf4": {"precision": "nf4"},
    "the target in nf4 and a context of 512 tokens": {"precision": "nf4", "tokens": 512},
    "the target in nf4, the draft model in nf4 and a context of 512 tokens": {
        "precision": "nf4",
        "draft_precision": "nf4",
        "tokens": 512,
    },
}
"""Every change, the cheapest to a person first."""


@pytest.mark.parametrize("changes", ORDER.values(), ids=ORDER)
def test_the_cheapest_change_that_is_enough_is_named(changes):
    free = needs(**changes)
    found = fit(PLAN, [card(free)])
    assert found.change == next(words for words, room in ORDER.items() if needs(**room) <= free)
    assert found.change in found.sentence


def test_another_device_is_the_last_resort_and_nothing_is_promised_that_is_not_there():
    elsewhere = DeviceMemory("cpu", "CPU", 64_000_000_000, 64_000_000_000)
    assert fit(PLAN, [card(1_000_000), elsewhere]).change == "the device cpu"
    alone = fit(PLAN, [card(1_000_000)])
    assert alone.change == ""
    assert "smaller model" in alone.sentence


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({}, {"cuda": ["nf4"], "cpu": ["bf16"]}),
        ({"precision": "fp16", "draft_precision": "fp16"}, {"cuda": {"nf4": "No bitsandbytes."}}),
        ({"draft_precision": "fp16"}, {"cuda": ["nf4"]}),
    ],
)
def test_nothing_is_proposed_that_a_device_cannot_take(changes, refused):
    wide = msgspec.structs.replace(PLAN, tokens=512, at_once=False, **changes)
    elsewhere = DeviceMemory("cpu", "CPU", 64_000_000_000, 64_000_000_000)
    room = needs(precision="nf4", draft_precision="nf4", tokens=512, at_once=False)
    places = [card(room), elsewhere]
    assert fit(wide, places, refused=refused).change == ""
    assert "nf4" in fit(wide, places).change


def test_a_whole_number_precision_of_the_cpu_is_not_proposed_for_a_card():
    elsewhere = DeviceMemory("cpu", "CPU", 1_000_000, 64_000_000_000)
    held = msgspec.structs.replace(
        PLAN, device="cpu", draft=None, drafter="nothing", tokens=512, at_once=False
    )
    refused = {"cpu": ["nf4", "bf16"]}
    for precision, change in (("int8", ""), ("bf16", "the device cuda:0")):
        plan = msgspec.structs.replace(held, precision=precision)
        assert fit(plan, [elsewhere, card(64_000_000_000)], refused=refused).change == change


@pytest.mark.parametrize(
    ("asked", "device", "draft_device", "taken"),
    [
        ("int8", "cpu", None, "int8"),
        ("int8", "cpu", "cuda:0", "nf4"),
        ("fp16", "cuda:0", "cpu", "fp32"),
        ("bf16", "cuda:0", "cpu", "bf16"),
    ],
)
def test_a_draft_on_another_kind_of_device_is_planned_in_a_precision_of_that_device(
    asked, device, draft_device, taken
):
    sizes = PairSizes(
        PairEntry("p", "P", "big", "draft-model"), SIZE, SIZE, None, same_weights=False
    )
    wish = Wish(tokens=100, precision=asked, device=device, draft_device=draft_device)
    there = [card(1), DeviceMemory("cpu", "CPU", 10**11, 10**11)]
    plan = plan_of(sizes, wish, there)
    assert (plan.precision, plan.draft_precision) == (asked, taken)
    # A pair that says so itself is planned alike.
    own = msgspec.structs.replace(sizes, entry=msgspec.structs.replace(
        sizes.entry, draft_device=draft_device))  # fmt: skip
    asked_less = msgspec.structs.replace(wish, draft_device=None)
    assert plan_of(own, asked_less, there) == plan


@pytest.mark.parametrize(
    ("device", "refused", "taken"),
    [
        ("cuda:0", {}, "nf4"),
        ("cuda:0", {"cuda": ["nf4", "fp4", "llm-int8"]}, "bf16"),
        ("cuda:0", {"cuda": ["nf4", "bf16"]}, "fp16"),
        ("cuda:0", {"cpu": ["nf4"]}, "nf4"),
        ("cpu", {"cpu": ["nf4"]}, "fp32"),
        ("mps", {}, "bf16"),
    ],
)
def test_the_precision_that_no_one_asked_for_is_the_one_that_loading_would_choose(
    device, refused, taken
):
    sizes = PairSizes(PairEntry("p", "P", "big", "ngram"), SIZE, None, None, same_weights=False)
    there = [card(1), DeviceMemory("cpu", "CPU", 10**12, 10**12)]
    assert plan_of(sizes, Wish(tokens=9, device=device), there, refused=refused).precision == taken
