"""A record is its events, applied in order; it leaves and comes back whole."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some
from recorded import full_round, lane_events, record_of, started

from app.run.events import (
    Abandoned,
    At,
    FirstToken,
    LaneEnded,
    LaneStarted,
    Phases,
    PromptRead,
    Round,
    RoundCommitted,
    RunEnded,
    RunEvent,
    Token,
)
from app.run.figures import FIGURES, agreement
from app.run.metrics import decode_speedup, request_speedup, same_text
from app.run.record import RunRecord
from app.run.settings import Sampling


def test_events_of_interleaved_lanes_find_their_repetition():
    fast = list(lane_events("speculative", [[2, 3], [4, 5]]))
    slow = list(lane_events("baseline", [[2], [3], [4], [5]]))
    mixed = [event for pair in zip(fast, slow, strict=False) for event in pair]
    record = record_of(*mixed, *slow[len(fast) :], RunEnded("r", "finished", peak_bytes=7))
    (fast_found,) = record.repetitions("speculative")
    (slow_found,) = record.repetitions("baseline")
    assert fast_found.token_ids == slow_found.token_ids == [1, 2, 3, 4, 5]
    assert [at.lane for at in record.order] == ["speculative", "baseline"]
    assert (record.outcome, record.peak_bytes) == ("finished", 7)
    assert same_text(record).same
    assert decode_speedup(record).values == (2.0,)
    assert request_speedup(record).values == (4.5 / 2.5,)


def test_an_event_of_a_lane_that_never_started_is_refused():
    with pytest.raises(KeyError):
        record_of(PromptRead(At("r", "baseline"), 1, 2))


def test_a_stop_string_and_what_lies_behind_it_are_no_part_of_the_text():
    at = At("r", "speculative")
    record = record_of(
        LaneStarted(at),
        FirstToken(at, Token(1, "one ", "first"), 0.5),
        RoundCommitted(at, full_round(0, [2, 3])),
        LaneEnded(at, "stop string", dropped=4),
    )
    assert record.repetitions("speculative")[0].text == "one <2"


def test_an_incomplete_character_stays_in_the_text():
    at = At("r", "speculative")
    record = record_of(LaneStarted(at), LaneEnded(at, "length", tail="\ufffd"))
    assert record.repetitions("speculative")[0].text == "\ufffd"


def test_a_partial_record_compares_what_both_lanes_have():
    fast = lane_events("speculative", [[2, 3], [4, 5]])
    slow = list(lane_events("baseline", [[2], [3]]))[:-1]
    record = record_of(*fast, *slow)
    assert same_text(record).compared == 3
    assert same_text(record).same
    assert decode_speedup(record).values == (2.0,)
    assert request_speedup(record) is None
    record.close("engine ended", message="killed by signal 9")
    assert (record.outcome, record.message) == ("engine ended", "killed by signal 9")


def test_the_first_difference_of_the_lanes_is_found():
    differ = record_of(*lane_events("speculative", [[2, 9]]), *lane_events("baseline", [[2], [3]]))
    assert same_text(differ).first_difference == 2
    shorter = record_of(*lane_events("speculative", [[2]]), *lane_events("baseline", [[2], [3]]))
    assert same_text(shorter).first_difference == 2
    assert "token 3" in agreement(differ)


def test_no_text_is_compared_where_there_is_none_or_it_need_not_be_equal():
    lanes = [*lane_events("speculative", [[2]]), *lane_events("baseline", [[2]])]
    assert same_text(record_of(*lanes, sampling=Sampling(temperature=1.0))) is None
    assert same_text(record_of(*lane_events("speculative", [[2]]))) is None
    opened = [LaneStarted(At("r", "speculative")), LaneStarted(At("r", "baseline"))]
    assert same_text(record_of(*opened)) is None


def test_speed_ups_are_medians_of_pairs():
    events = []
    for repetition, seconds in enumerate([1.0, 2.0, 4.0]):
        events += lane_events("speculative", [[2, 3]], repetition=repetition)
        events += lane_events("baseline", [[2], [3]], repetition=repetition, seconds=seconds)
    record = record_of(*events)
    assert decode_speedup(record).values == (2.0, 4.0, 8.0)
    text = FIGURES["decode_speedup"].text(record)
    assert text == "4.00× (median of 3 pairs, 2.00× to 8.00×)"


def test_one_pair_has_no_spread_and_no_pair_has_no_value():
    lanes = [*lane_events("speculative", [[2, 3]]), *lane_events("baseline", [[2], [3]])]
    assert FIGURES["decode_speedup"].text(record_of(*lanes)) == "2.00× (one pair, no spread)"
    assert {figure.text(record_of()) for figure in FIGURES.values()} == {"n/a"}


def test_a_round_given_up_enters_no_figure():
    lane = list(lane_events("speculative", [[2, 3]], finish="cancelled"))
    whole = record_of(*lane)
    given_up = record_of(*lane[:-1], Abandoned(lane[0].at, 3, 99.0), lane[-1])
    assert given_up.repetitions("speculative")[0].abandoned.drafted == 3
    for figure in FIGURES.values():
        assert figure.value(whole) == figure.value(given_up)


numbers = some.none() | some.floats(allow_nan=False, allow_infinity=False)
words = some.text(max_size=8)
tokens = some.builds(
    Token,
    id=some.integers(0, 2**31),
    text=words,
    status=some.sampled_from(["accepted", "corrected", "rejected", "plain"]),
    source=some.none() | words,
    target_probability=numbers,
    draw=numbers,
)
rounds = some.builds(
    Round,
    index=some.integers(0, 99),
    limit=some.integers(0, 9),
    limited_by=some.just("draft length"),
    committed=some.lists(tokens, max_size=3).map(tuple),
    thrown=some.lists(tokens, max_size=3).map(tuple),
    phases=some.builds(Phases, draft=some.floats(0, 9), verify=some.floats(0, 9)),
    draft_stop=words,
)


@given(some.lists(rounds, max_size=3), words, some.integers(0, 3))
def test_events_and_records_come_back_equal(made, message, dropped):
    at = At("r", "speculative")
    events: list[RunEvent] = [started(), LaneStarted(at)]
    events += [RoundCommitted(at, each) for each in made]
    events += [LaneEnded(at, "stop string", dropped), RunEnded("r", "failed", message)]
    for codec in (msgspec.json, msgspec.msgpack):
        assert codec.decode(codec.encode(events), type=list[RunEvent]) == events
    record = record_of(*events[1:])
    assert msgspec.json.decode(msgspec.json.encode(record), type=RunRecord) == record


def test_a_stop_string_that_began_in_the_text_before_leaves_nothing():
    # "E" was written by the run that this one continues; "ND" completes "END" and more.
    at = At("r", "speculative")
    record = RunRecord.begin(started())
    record.apply(LaneStarted(at))
    record.apply(FirstToken(at, Token(1, "ND!", "first"), 0.1))
    record.apply(LaneEnded(at, "stop string", dropped=4))
    assert record.repetitions("speculative")[0].text == ""
