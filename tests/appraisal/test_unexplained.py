"""The reason that is named where the time does not add up, from planted times.

A pass of one row costs 0.75 s measured apart, one of five rows 0.9 s; a loop's own work takes
0.25 s and its draft 0.6 s, so that it should take 1.75 s.
"""

import pytest
from msgspec.structs import replace
from recorded import costed_record

from app.appraisal.appraise import appraise
from app.appraisal.findings import findings


def account_with(speculative=lambda at: {}, baseline=lambda at: {}, *, prompt=()):
    """The line of the account of a run whose loops took these seconds by their place."""
    record = costed_record()
    for lane, changed in zip(record.lanes, (speculative, baseline), strict=True):
        rounds = lane.repetitions[0].rounds
        rounds[:] = [
            replace(one, phases=replace(one.phases, **changed(at))) for at, one in enumerate(rounds)
        ]
    record.prompt_ids = prompt or record.prompt_ids
    assert appraise(record).adds_up is ("does not" not in answer(record))
    return answer(record)


def answer(record):
    return {one.label: one.value for one in findings(record)}["Accounted speed-up"]


def test_time_that_adds_up_needs_no_reason():
    assert account_with().startswith("1.71×; adds up (0 %")
    assert account_with().endswith("er)")


@pytest.mark.parametrize(
    ("speculative", "baseline", "said"),
    [
        # 1.35 s for 0.9: 0.45 more of 1.75. The baseline's passes took half as long again too.
        (
            lambda at: {"verify": 1.35},
            lambda at: {"verify": 1.125},
            "does not add up (26 % longer): a single pass took 1125 ms in the run and 750 ms "
            "measured apart: the machine was busier or slower meanwhile; measure again",
        ),
        # 0.6 s for 0.9: 0.3 less of 1.75.
        (
            lambda at: {"verify": 0.6},
            lambda at: {"verify": 0.5},
            "does not add up (17 % shorter): a single pass took 500 ms in the run and 750 ms "
            "measured apart: the machine was busier or slower then; measure again",
        ),
        # The baseline is as it should be.
        (
            lambda at: {"verify": 1.35},
            lambda at: {},
            "(26 % longer): its passes took 1350 ms on average and 900 ms measured apart: "
            "the machine was busier or slower meanwhile; measure again",
        ),
        # One of eight passes took 3.6 s more, as all of them together should have taken in 1.75 s.
        (
            lambda at: {"verify": 4.5 if at == 3 else 0.9},
            lambda at: {},
            "(26 % longer): its passes took 1350 ms on average and 900 ms measured apart: "
            "a few of them were held up; measure again",
        ),
        # One of eight loops took 4 s more outside of its models: 4 / 14 s.
        (
            lambda at: {"rest": 4.05 if at == 3 else 0.05},
            lambda at: {},
            "(29 % longer): work outside of models took 750 ms a loop on average and 250 ms in "
            "the middle one: a few loops were held up; measure again",
        ),
    ],
)
def test_the_reason_is_what_the_times_show(speculative, baseline, said):
    assert account_with(speculative, baseline).endswith(said)


def test_a_baseline_that_was_held_up_flatters_the_speedup_and_is_told():
    # One of 24 passes took 6 s instead of 0.75: 23.25 s in all, 0.96875 each.
    told = account_with(baseline=lambda at: {"verify": 6.0 if at == 5 else 0.75})
    assert told.endswith(
        " % longer); passes of the baseline took 969 ms on average and 750 ms in the middle one: "
        "a few were held up, which flatters the speed-up"
    )


def test_a_text_longer_than_what_was_measured_is_named():
    # 240 tokens of a prompt and 25 behind it; passes were measured behind 256.
    told = account_with(lambda at: {"verify": 1.35}, prompt=tuple(range(240)))
    assert told.endswith("there it was behind 256 tokens, and the text is longer")
