import msgspec
import pytest

from app.run.cost import CostKey, PassCosts, bucket_of

COSTS = PassCosts(
    model="target",
    device="a card",
    precision="nf4",
    attention="sdpa",
    context_bucket=256,
    seconds={1: 0.010, 2: 0.011, 5: 0.021},
    repeats=20,
    draft="draft",
    draft_step=0.002,
)


def changed(**parts):
    return msgspec.structs.replace(COSTS, **parts)


def test_costs_survive_json():
    assert msgspec.json.decode(msgspec.json.encode(COSTS), type=PassCosts) == COSTS


def test_costs_are_read_in_single_steps():
    assert COSTS.in_single_steps(5) == pytest.approx(2.1)
    assert COSTS.in_single_steps(1) == 1.0
    assert COSTS.in_single_steps(3) is None
    assert COSTS.draft_ratio == pytest.approx(0.2)
    assert changed(draft=None, draft_step=None).draft_ratio is None


def test_costs_are_looked_up_by_what_they_hold_for():
    assert COSTS.key == CostKey("target", "a card", "nf4", "sdpa", 256)
    assert {COSTS.key: 1}[changed(seconds={1: 1.0}).key] == 1
    assert changed(attention="eager").key != COSTS.key


@pytest.mark.parametrize(
    "parts",
    [
        {"seconds": {2: 1.0}},
        {"seconds": {}},
        {"seconds": {0: 1.0, 1: 1.0}},
        {"seconds": {1: 0.0}},
        {"seconds": {1: float("nan")}},
        {"seconds": {1: float("inf")}},
        {"repeats": 0},
        {"context_bucket": 0},
        {"draft_step": -0.1},
        {"draft_prompt_per_token": float("nan")},
    ],
)
def test_costs_that_cannot_have_been_measured_are_refused(parts):
    with pytest.raises(ValueError, match=r"pass|time|Repeats"):
        changed(**parts)


def test_costs_that_cannot_have_been_measured_are_refused_from_a_file():
    broken = msgspec.json.encode(COSTS).replace(b'"1":0.01', b'"1":-0.01')
    with pytest.raises(msgspec.ValidationError, match="above zero"):
        msgspec.json.decode(broken, type=PassCosts)


@pytest.mark.parametrize(
    ("context", "bucket"),
    [(0, 256), (1, 256), (256, 256), (257, 512), (512, 512), (513, 1024), (4096, 4096)],
)
def test_contexts_fall_into_buckets_of_powers_of_two(context, bucket):
    assert bucket_of(context) == bucket
