"""Flags: what raises them, what they say, and which figures they touch."""

import msgspec
import pytest
from recorded import lane_events, record_of, run_record

from app.run.events import ConditionsSeen, RunEnded
from app.run.figures import FIGURES
from app.run.flagged import cautions, cautions_on, figures_of, flags_of, marked
from app.run.flags import Flag, FlagKind, relative_spread, spread_flag


def test_the_spread_by_hand():
    assert relative_spread([1.0, 1.2, 1.1]) == pytest.approx(0.2 / 1.1)
    assert relative_spread([1.0]) is None
    assert relative_spread([]) is None
    assert relative_spread([0.0, 0.0, 1.0]) is None


def test_repetitions_far_apart_are_flagged_and_near_ones_are_not():
    # A lane that is 30 % slower in every other repetition (faults: background load and heat).
    flag = spread_flag([1.5, 1.5 / 1.3, 1.5])
    assert flag.kind == "noisy"
    assert "do not trust" in flag.message
    assert "23 % of the median" in flag.message
    assert spread_flag([1.50, 1.55, 1.60]) is None
    assert spread_flag([]) is None


def test_one_pair_is_flagged():
    flag = spread_flag([1.5])
    assert flag.kind == "one pair"
    assert figures_of(flag) == ("decode_speedup", "request_speedup")


@pytest.mark.parametrize("kind", FlagKind.__args__)
def test_every_flag_says_what_it_is_and_touches_known_figures(kind):
    flag = Flag(kind)
    assert flag.message.endswith(".")
    assert figures_of(flag)
    assert set(figures_of(flag)) <= set(FIGURES)
    assert len(set(figures_of(flag))) == len(figures_of(flag))
    assert msgspec.json.decode(msgspec.json.encode(flag), type=Flag) == flag


def test_a_flag_tells_what_was_seen():
    assert Flag("throttled", "from 1980 to 1410 MHz").message == (
        "The device lowered its clock while the run went on (from 1980 to 1410 MHz)."
    )


def test_a_clock_touches_no_count():
    assert "acceptance_rate" not in figures_of(Flag("throttled"))
    assert "speculative_decode_tokens_per_second" in figures_of(Flag("throttled"))
    assert "acceptance_rate" in figures_of(Flag("coupled rows"))


def test_a_repeated_text_touches_all_but_the_baseline():
    spared = set(FIGURES) - set(figures_of(Flag("repeated text")))
    assert "baseline_decode_tokens_per_second" in spared
    costs = {name for name, figure in FIGURES.items() if figure.unit == "steps"}
    first = "speculative_time_to_first_token_s"  # before anything is guessed
    assert all(name.startswith("baseline_") for name in spared - costs - {first})
    assert {"decode_speedup", "acceptance_rate", "speculative_decode_tokens_per_second"} <= set(
        figures_of(Flag("repeated text"))
    )


def pairs(seconds):
    """A record of paired repetitions whose speculative rounds take these seconds."""
    lanes = []
    for repetition, each in enumerate(seconds):
        lanes += lane_events("speculative", [[2, 3]] * 4, repetition=repetition, seconds=each)
        lanes += lane_events("baseline", [[2]] * 8, repetition=repetition)
    return record_of(*lanes, RunEnded("r", "finished"), repetitions=len(seconds))


def test_a_run_whose_every_other_repetition_is_slower_is_noisy():
    # 2.00× and 2/1.3 = 1.54×: a range of 30 % of the median, 1.54×.
    slowed = pairs([1.0, 1.3, 1.0, 1.3, 1.3])
    (flag,) = flags_of(slowed)
    assert (flag.kind, flag.detail) == ("noisy", "their range is 30 % of the median")
    assert flags_of(pairs([1.0, 1.02, 1.0])) == ()
    assert [flag.kind for flag in flags_of(pairs([1.0]))] == ["one pair"]


def test_what_was_seen_stays_in_the_record_and_touches_what_was_timed():
    seen = Flag("battery"), Flag("throttled", "from 3000 to 2000 MHz")
    record = run_record()
    record.apply(ConditionsSeen("r", seen))
    assert record.flags == seen
    kinds = [flag.kind for flag in cautions_on(record, "baseline_decode_tokens_per_second")]
    assert kinds == ["battery", "throttled"]
    assert cautions_on(record, "acceptance_rate") == ()
    assert flags_of(record)[0].kind == "one pair"
    assert cautions(record) == seen
    told = "2.00× (one pair, no spread); caution: battery, throttled"
    assert marked(record, FIGURES["decode_speedup"]) == told
    assert marked(record, FIGURES["acceptance_rate"]) == "50.0 %"
    assert marked(record_of(), FIGURES["decode_speedup"]) == "n/a"


def test_a_target_with_coupled_rows_is_flagged_where_it_speculates():
    record = run_record()
    record.target = msgspec.structs.replace(
        record.target, rows_independent=False, rows_note="they differ by 0.1"
    )
    assert "they differ by 0.1" in cautions_on(record, "acceptance_rate")[0].message
    assert cautions_on(record, "speculative_decode_s") == ()
    record.settings = msgspec.structs.replace(record.settings, method="nothing")
    assert cautions_on(record, "acceptance_rate") == ()
