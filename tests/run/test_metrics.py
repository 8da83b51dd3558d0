"""The identities of a run's numbers: by hand for scripted rounds, by property for random ones."""

from itertools import count
from statistics import median

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from app.run.events import At, Phases, Round, Token
from app.run.identities import violations
from app.run.metrics import (
    Counts,
    Spread,
    acceptance_by_position,
    chunk_gaps,
    counts,
    decode_seconds,
    decode_speed,
    phase_seconds,
    ratio,
    seconds_per_token,
    share_outside_models,
    total_counts,
    total_seconds,
)
from app.run.record import Repetition

AT = At("run", "speculative")
FIRST = Token(1, "a", "first")


def round_of(committed, thrown="", *, index=0, limit=8, phases=None):
    """A round from the initials of its statuses: a, c, b, p kept; r, i, d thrown."""
    names = {
        "a": "accepted",
        "c": "corrected",
        "b": "bonus",
        "p": "plain",
        "r": "rejected",
        "i": "ignored",
        "d": "discarded",
        "f": "first",
    }
    return Round(
        index=index,
        limit=limit,
        limited_by="draft length",
        committed=tuple(Token(2, "x", names[each]) for each in committed),
        thrown=tuple(Token(3, "y", names[each]) for each in thrown),
        phases=phases or Phases(verify=0.5),
    )


def repetition_of(*rounds, finish="length", first=FIRST):
    numbered = [msgspec.structs.replace(each, index=i) for i, each in enumerate(rounds)]
    return Repetition(AT, first=first, time_to_first_token=0.25, rounds=numbered, finish=finish)


# D01, by hand. -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("round_", "numbers", "rates"),
    [
        # draft [T, F, T, T]: what would have matched behind the rejection was never decided
        (round_of("ac", "rii"), {"accepted": 1, "rejected": 1, "ignored": 2, "corrected": 1},
         {"drafted": 4, "tested": 2, "committed": 3, "acceptance_rate": 1 / 4,
          "conditional_acceptance": 1 / 2, "mean_accepted_prefix": 1.0, "tokens_per_loop": 2.0}),
        # draft [T, T, T, T] and a bonus
        (round_of("aaaab"), {"accepted": 4, "bonus": 1},
         {"drafted": 4, "tested": 4, "committed": 6, "acceptance_rate": 1.0,
          "conditional_acceptance": 1.0, "mean_accepted_prefix": 4.0, "tokens_per_loop": 5.0}),
        # end of text at draft 2 of 5, all matching
        (round_of("aa", "ddd"), {"accepted": 2, "discarded": 3},
         {"drafted": 5, "tested": 2, "committed": 3, "acceptance_rate": 2 / 5,
          "conditional_acceptance": 1.0, "mean_accepted_prefix": 2.0, "tokens_per_loop": 2.0}),
        # no guess at all
        (round_of("p"), {"plain": 1},
         {"drafted": 0, "tested": 0, "committed": 2, "acceptance_rate": None,
          "conditional_acceptance": None, "mean_accepted_prefix": None, "tokens_per_loop": 1.0}),
        # the first guess is rejected
        (round_of("c", "rii"), {"rejected": 1, "ignored": 2, "corrected": 1},
         {"drafted": 3, "tested": 1, "committed": 2, "acceptance_rate": 0.0,
          "conditional_acceptance": 0.0, "mean_accepted_prefix": 0.0, "tokens_per_loop": 1.0}),
        # end of text at the last guess: no bonus follows it
        (round_of("aaa"), {"accepted": 3},
         {"drafted": 3, "tested": 3, "committed": 4, "acceptance_rate": 1.0,
          "conditional_acceptance": 1.0, "mean_accepted_prefix": 3.0, "tokens_per_loop": 3.0}),
        # two tokens are left: one guess, and its bonus is the last token
        (round_of("ab", limit=1), {"accepted": 1, "bonus": 1},
         {"drafted": 1, "tested": 1, "committed": 3, "acceptance_rate": 1.0,
          "conditional_acceptance": 1.0, "mean_accepted_prefix": 1.0, "tokens_per_loop": 2.0}),
    ],
)  # fmt: skip
def test_scripted_rounds(round_, numbers, rates):
    finish = "end of text" if round_.committed[-1].status == "accepted" else "length"
    repetition = repetition_of(round_, finish=finish)
    drafting = int(rates["drafted"] > 0)
    found = counts(repetition)
    assert found == Counts(first=1, rounds=1, drafting_rounds=drafting, **numbers)
    assert {name: getattr(found, name) for name in rates} == rates
    assert violations(repetition) == []


def test_a_scripted_lane_in_total():
    repetition = repetition_of(
        round_of("ac", "rii"), round_of("aaaab"), round_of("p"), round_of("aa", "ddd"),
        finish="end of text",
    )  # fmt: skip
    found = counts(repetition)
    assert (found.drafted, found.accepted, found.tested, found.rounds) == (13, 7, 8, 4)
    assert found.committed == len(repetition.tokens) == 11
    assert found.acceptance_rate == pytest.approx(7 / 13)
    assert found.conditional_acceptance == pytest.approx(7 / 8)
    assert found.mean_accepted_prefix == pytest.approx(7 / 3)
    assert found.tokens_per_loop == pytest.approx(10 / 4)
    assert decode_seconds(repetition) == 2.0
    assert decode_speed(repetition) == 5.0
    assert total_seconds(repetition) == 2.25
    places = acceptance_by_position(repetition.rounds)
    assert [(each.reached, each.accepted) for each in places] == [(3, 3), (3, 2), (1, 1), (1, 1)]
    assert [each.unconditional for each in places] == [1.0, 2 / 3, 1 / 3, 1 / 3]
    assert [each.conditional for each in places] == [1.0, 2 / 3, 1.0, 1.0]


def test_nothing_to_divide_by_is_none():
    empty = Repetition(AT)
    found = counts(empty)
    assert found == Counts()
    assert found.acceptance_rate is found.conditional_acceptance is found.tokens_per_loop is None
    assert decode_speed(empty) is total_seconds(empty) is share_outside_models(empty) is None
    assert acceptance_by_position([]) == []
    assert ratio(1, 0) is None
    assert ratio(0, 2) == 0
    timeless = repetition_of(round_of("p", phases=Phases()))
    assert decode_speed(timeless) is None


# Random rounds. ------------------------------------------------------------------------------


@some.composite
def sound_rounds(draw):
    """Rounds as a sound engine makes them, and why they ended: whole, stopped, or cut short."""
    limits = draw(some.lists(some.integers(0, 6), max_size=8))
    rounds = [draw(_sound_round(limit)) for limit in limits]
    finish = draw(some.sampled_from(["length", "context", "cancelled", "failed", None]))
    if draw(some.booleans()):
        drafted = draw(some.integers(1, 6))
        kept = draw(some.integers(1, drafted))
        rounds.append(round_of("a" * kept, "d" * (drafted - kept), limit=drafted))
        finish = draw(some.sampled_from(["end of text", "stop string"]))
    return repetition_of(*rounds, finish=finish)


@some.composite
def _sound_round(draw, limit):
    drafted = draw(some.integers(0, limit))
    accepted = draw(some.integers(0, drafted))
    seconds = some.floats(0, 10)
    phases = Phases(draft=draw(seconds), verify=draw(seconds), decide=draw(seconds))
    if drafted == 0:
        return round_of("p", limit=limit, phases=phases)
    if accepted == drafted:
        return round_of("a" * accepted + "b", limit=limit, phases=phases)
    ignored = drafted - accepted - 1
    return round_of("a" * accepted + "c", "r" + "i" * ignored, limit=limit, phases=phases)


@given(sound_rounds())
def test_identities_hold_for_every_sound_lane(repetition):
    assert violations(repetition) == []
    found = counts(repetition)
    assert found.drafted == found.accepted + found.rejected + found.ignored + found.discarded
    assert found.drafted == sum(round_.drafted for round_ in repetition.rounds)
    assert found.committed == len(repetition.tokens) == len(repetition.token_ids)
    assert found.committed == (
        found.first + found.accepted + found.corrected + found.bonus + found.plain
    )
    assert found.rejected == found.corrected
    assert found.rounds == len(repetition.rounds)
    assert 0 <= (found.acceptance_rate or 0) <= (found.conditional_acceptance or 0) <= 1
    longest = max((round_.limit for round_ in repetition.rounds), default=0)
    assert found.rounds == 0 or 1 <= (found.tokens_per_loop or 0) <= longest + 1


@given(sound_rounds())
def test_places_of_the_draft_add_up_to_the_counts(repetition):
    found, places = counts(repetition), acceptance_by_position(repetition.rounds)
    assert sum(each.accepted for each in places) == found.accepted
    assert sum(each.reached for each in places) == found.tested
    reached = [each.reached for each in places]
    assert reached == sorted(reached, reverse=True)


@given(some.lists(sound_rounds(), max_size=4))
def test_counts_of_repetitions_add_up(repetitions):
    together, alone = total_counts(repetitions), list(map(counts, repetitions))
    for name in Counts.__struct_fields__:
        assert getattr(together, name) == sum(getattr(each, name) for each in alone)


@given(sound_rounds())
def test_phases_add_up_to_the_decode_time(repetition):
    assert phase_seconds(repetition).total == pytest.approx(decode_seconds(repetition))


@given(sound_rounds(), some.data())
def test_a_part_of_a_sound_lane_is_sound(repetition, data):
    end = data.draw(some.integers(0, len(repetition.rounds)))
    part = repetition_of(*repetition.rounds[:end], finish="cancelled")
    assert violations(part) == []


@given(sound_rounds())
def test_a_growing_lane_has_at_every_moment_the_figures_of_one_read_whole(repetition):
    growing = repetition_of()
    for seen, round_ in enumerate(repetition.rounds, 1):
        growing.rounds.append(round_)
        whole = repetition_of(*repetition.rounds[:seen])
        assert counts(growing) == counts(whole)
        assert decode_seconds(growing) == pytest.approx(decode_seconds(whole))
    assert msgspec.json.encode(growing) == msgspec.json.encode(repetition_of(*repetition.rounds))


@pytest.mark.parametrize(
    "wrong",
    [
        round_of("ac", "rri"),  # two rejections
        round_of("ac", "i"),  # a correction of nothing
        round_of("a", "ri"),  # a rejection without its correction
        round_of("aab", "d"),  # a bonus behind a stop
        round_of("aab", "ri"),  # a bonus behind a rejection
        round_of("b"),  # a bonus without a draft
        round_of("ap"),  # a plain token behind a draft
        round_of("pp"),  # two tokens of a round without a draft
        round_of("aaa", limit=2),  # more guesses than allowed
        round_of("", "r"),  # nothing committed
        round_of("ca", "r"),  # a guess accepted behind the rejection
        round_of("f"),  # a first token that no prompt pass made
        round_of("ac", "ir"),  # ignored before the rejection
        round_of("ac", "rd"),  # discarded, though nothing stopped
        round_of("aac", "rir"),
    ],
)
def test_planted_faults_of_a_round_are_found(wrong):
    assert violations(repetition_of(wrong, finish="end of text"))


def test_planted_faults_of_a_lane_are_found():
    no_bonus = repetition_of(round_of("aa"), round_of("p"))
    assert violations(no_bonus) == ["a loop follows the end of the text"]
    assert violations(repetition_of(round_of("aa"), finish="length"))
    assert violations(repetition_of(round_of("p"), first=None))
    twice = Repetition(AT, first=FIRST, rounds=[round_of("p"), round_of("p")])
    assert violations(twice) == ["loops are not numbered in order"]


@given(some.lists(some.floats(0.01, 100), min_size=1))
def test_a_spread_is_the_median_and_the_range(values):
    spread = Spread(tuple(values))
    assert spread.low <= spread.median <= spread.high
    assert spread.median == median(values)
    assert spread.single == (len(values) == 1)


def test_a_guess_never_counts_for_more_than_one_round():
    indices = count()
    rounds = [msgspec.structs.replace(round_of("aab"), index=next(indices)) for _ in range(3)]
    assert counts(Repetition(AT, first=FIRST, rounds=rounds)).drafting_rounds == 3


def test_gaps_are_of_rounds_and_seconds_a_token_of_tokens():
    kept = tuple(Token(n, "a", "accepted") for n in range(2))
    rounds = [
        Round(0, 4, "draft length", (*kept, Token(5, "b", "bonus")), (), Phases(verify=0.75)),
        Round(1, 4, "draft length", (Token(6, "c", "plain"),), (), Phases(verify=0.5, rest=0.125)),
    ]
    repetition = Repetition(AT, first=FIRST, time_to_first_token=9.0, rounds=rounds)
    assert chunk_gaps(repetition) == [0.75, 0.625]
    assert seconds_per_token(repetition) == [0.25, 0.25, 0.25, 0.625]
    assert chunk_gaps(Repetition(AT)) == seconds_per_token(Repetition(AT)) == []


def test_the_tokens_of_a_round_share_its_seconds():
    four, two = (Phases(verify=seconds) for seconds in (0.4, 0.6))
    lane = repetition_of(round_of("aaab", phases=four), round_of("ac", "r", phases=two))
    assert seconds_per_token(lane) == pytest.approx([0.1] * 4 + [0.3] * 2)
    assert chunk_gaps(lane) == pytest.approx([0.4, 0.6])
    assert seconds_per_token(repetition_of()) == chunk_gaps(repetition_of()) == []


def shown(text, *, held_back=0):
    """A round of a second that adds this text."""
    token = Token(2, text, "plain")
    return msgspec.structs.replace(
        round_of("p", phases=Phases(verify=1.0)), committed=(token,), held_back=held_back
    )


def test_a_round_that_shows_nothing_adds_to_the_next_gap():
    # Half a character; then a possible beginning of a stop string, which turns out to be none.
    assert chunk_gaps(repetition_of(shown("x"), shown(""), shown("é"))) == [1.0, 2.0]
    held = repetition_of(shown("x"), shown("\n", held_back=1), shown("y"), shown("z"))
    assert chunk_gaps(held) == [1.0, 2.0, 1.0]


def test_a_stop_string_is_never_shown():
    lane = repetition_of(shown("x"), shown("STOP"), finish="stop string")
    lane.dropped = 4
    assert chunk_gaps(lane) == [1.0]


def test_before_the_first_chunk_there_is_no_gap():
    lane = repetition_of(shown(""), shown("x"), shown("y"), first=Token(1, "", "first"))
    assert chunk_gaps(lane) == [1.0]
