"""The loop, against scripted targets whose right output is known, and against plain decoding."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.decoding.contracts import Read
from app.decoding.loop import decode
from app.decoding.proposers.ngram import Ngram
from app.models.session import Session
from app.run.events import Abandoned, LaneEnded
from app.run.identities import violations
from app.run.metrics import counts
from app.run.problems import Cancelled, Problem
from app.run.settings import Sampling
from oracles import check_copy_draft
from toys import (
    FakeClock,
    Guesses,
    Script,
    ScriptedLM,
    Sessions,
    draft_model,
    make_lane,
    next_is,
    run,
    sessions,
    tiny_llama,
)

END = 63


def counting(prefix):
    """A target that counts upwards."""
    return (prefix[-1] + 1) % 60


def statuses(round_):
    return [token.status for token in (*round_.committed, *round_.thrown)]


def numbers(repetition):
    tally = counts(repetition)
    return {name: getattr(tally, name) for name in tally.__struct_fields__}


def test_the_worked_round_of_d01():
    # Guesses [T, F, T, T]: one accepted, one rejected, two never decided.
    lane = make_lane(
        [10], proposer=Guesses(lambda text, r: [text[-1] + 1, 5, 14, 15]), max_new_tokens=7
    )
    repetition = run(lane, Script(next_is(counting)))
    assert statuses(repetition.rounds[0]) == [
        "accepted",
        "corrected",
        "rejected",
        "ignored",
        "ignored",
    ]
    assert repetition.token_ids == [11, 12, 13, 14, 15, 16, 17]
    assert violations(repetition) == []


def test_all_accepted_brings_a_bonus():
    right = Guesses(lambda text, r: [text[-1] + 1 + i for i in range(4)])
    repetition = run(make_lane([10], proposer=right, max_new_tokens=6), Script(next_is(counting)))
    assert statuses(repetition.rounds[0]) == ["accepted"] * 4 + ["bonus"]
    assert repetition.token_ids == [11, 12, 13, 14, 15, 16]
    assert repetition.finish == "length"


def test_end_of_text_at_the_second_of_five_guesses():
    # D01: all five match, the second is the end: two accepted, three discarded, no bonus.
    right = Guesses(lambda text, r: [12, END, 40, 41, 42])
    lane = make_lane([10], proposer=right, draft_length=5, end_ids=[END])
    law = next_is(lambda p: {12: END, END: 40}.get(p[-1], p[-1] + 1))
    repetition = run(lane, Script(law))
    assert statuses(repetition.rounds[0]) == ["accepted"] * 2 + ["discarded"] * 3
    assert repetition.token_ids == [11, 12, END]
    assert repetition.finish == "end of text"
    assert violations(repetition) == []


def test_the_last_guess_ends_the_text_and_there_is_no_bonus():
    # A02.
    law = next_is(lambda p: END if p[-1] == 13 else counting(p))
    lane = make_lane(
        [10], proposer=Guesses(lambda t, r: [12, 13, END]), draft_length=3, end_ids=[END]
    )
    repetition = run(lane, Script(law))
    assert statuses(repetition.rounds[0]) == ["accepted"] * 3
    assert repetition.token_ids == [11, 12, 13, END]
    assert repetition.finish == "end of text"


def test_an_end_that_the_target_rejects_does_not_end_anything():
    # A05.
    lane = make_lane(
        [10], proposer=Guesses(lambda t, r: [t[-1] + 1, END]), end_ids=[END], max_new_tokens=6
    )
    repetition = run(lane, Script(next_is(counting)))
    assert repetition.token_ids == [11, 12, 13, 14, 15, 16]
    assert repetition.finish == "length"


@pytest.mark.parametrize("cap", range(5))
@pytest.mark.parametrize("gamma", [1, 4, 8])
def test_never_more_than_the_cap(cap, gamma):
    # A04.
    target = ScriptedLM(next_is(counting))
    right = Guesses(lambda text, r: [text[-1] + 1 + i for i in range(gamma)])
    lane = make_lane([10], proposer=right, draft_length=gamma, max_new_tokens=cap)
    repetition = run(lane, sessions(target))
    assert repetition.token_ids == [11 + i for i in range(cap)]
    assert repetition.finish == "length"
    for round_ in repetition.rounds:
        assert round_.drafted <= round_.limit
    assert target.widths == [] if cap == 0 else True
    assert violations(repetition) == []


@pytest.mark.parametrize("gamma", range(1, 9))
def test_every_stop_is_where_plain_decoding_has_it(gamma):
    # A01, A03: any guesses, any place of the end, any cap: the text is the plain one.
    for end_at, cap in itertools.product(range(1, 9), (3, 5, 8)):
        law = next_is(lambda p, end=end_at: END if len(p) == 3 + end else counting(p))
        plain = run(make_lane([1, 2, 3], max_new_tokens=cap, end_ids=[END]), Script(law))
        guess = Guesses(lambda t, r: [t[-1] + 1 + i for i in range(gamma)])
        lane = make_lane(
            [1, 2, 3], proposer=guess, draft_length=gamma, max_new_tokens=cap, end_ids=[END]
        )
        fast = run(lane, Script(law))
        assert fast.token_ids == plain.token_ids
        assert (
            fast.finish
            == plain.finish
            == ("end of text" if end_at < cap or end_at + 1 == cap else "length")
        )
        assert violations(fast) == []


def test_a_target_never_agrees():
    # A10 and A12: nothing is accepted, and the text is the plain one.
    wrong = Guesses(lambda text, r: [(text[-1] + 7) % 60] * 5)
    for gamma in (1, 5):
        target = ScriptedLM(next_is(counting))
        lane = make_lane([10], proposer=wrong, draft_length=gamma, max_new_tokens=20)
        repetition = run(lane, sessions(target))
        assert repetition.token_ids == [(11 + i) % 60 for i in range(20)]
        assert counts(repetition).accepted == 0
        assert counts(repetition).acceptance_rate == 0.0
        assert counts(repetition).tokens_per_loop == 1.0


def test_rounds_with_and_without_a_draft():
    # A39: 3, 0, 2, 0 guesses.
    sizes = [3, 0, 2, 0]
    some = Guesses(lambda text, r: [text[-1] + 1 + i for i in range(sizes[r % 4])])
    lane = make_lane([10], proposer=some, max_new_tokens=10)
    repetition = run(lane, sessions(ScriptedLM(next_is(counting))))
    assert repetition.token_ids == list(range(11, 21))
    tally = counts(repetition)
    assert (tally.rounds, tally.drafting_rounds, tally.plain) == (4, 2, 2)
    assert violations(repetition) == []


def test_the_cache_is_the_text_after_every_round():
    # O3, with a proposer that is right now and then.
    target = ScriptedLM(next_is(counting))
    mixed = Guesses(lambda text, r: [text[-1] + 1, (text[-1] + 2 + r % 2) % 60, 3, 4])
    lane = make_lane([10, 11], proposer=mixed, max_new_tokens=40)
    reader = sessions(target)
    for event in _events(lane, reader):
        cache = target.caches[0].ids if target.caches else []
        if type(event).__name__ == "RoundCommitted":
            session = reader._sessions["target"]
            session.unread(lane.text.ids)
            assert cache == lane.text.ids[: len(cache)]
            assert len(cache) == len(lane.text.ids) - 1


def _events(lane, reader):
    from app.decoding.drivers import run_lane

    return run_lane(decode(lane), reader, lambda: None)


@pytest.mark.parametrize("gamma", [1, 2, 5])
def test_a_copy_of_the_target_is_always_right(gamma):
    # A11, A23.
    check_copy_draft(gamma)


PENALTIES = [
    Sampling(),
    Sampling(repetition_penalty=1.3),
    Sampling(presence_penalty=0.7, repetition_penalty=1.1),
]


@pytest.mark.parametrize("sampling", PENALTIES, ids=["plain", "repetition", "presence"])
@pytest.mark.parametrize("noise", [0.0, 0.05, None], ids=["copy", "noisy", "unrelated"])
def test_greedy_text_is_the_plain_one(noise, sampling):
    # O1 with real networks: drafts that are right always, often, hardly ever.
    target = tiny_llama(1)
    draft = tiny_llama(2) if noise is None else tiny_llama(1, noise=noise)
    plain = run(make_lane([3, 1, 4], sampling=sampling, max_new_tokens=40), sessions(target))
    for gamma in (1, 2, 3, 5, 8):
        lane = make_lane(
            [3, 1, 4],
            proposer=draft_model(width=64, sampling=sampling, prompt_length=3),
            sampling=sampling,
            draft_length=gamma,
            max_new_tokens=40,
        )
        fast = run(lane, sessions(target, draft))
        assert fast.token_ids == plain.token_ids
        assert violations(fast) == []


def test_penalties_with_a_draft_that_repeats_itself():
    # A17: the same id four times; each row has to see the ones before it.
    sampling = Sampling(repetition_penalty=1.3, presence_penalty=0.7)
    target = tiny_llama(5)
    plain = run(make_lane([7, 7], sampling=sampling, max_new_tokens=30), sessions(target))
    stubborn = Guesses(lambda text, r: [text[-1]] * 4)
    lane = make_lane([7, 7], proposer=stubborn, sampling=sampling, max_new_tokens=30)
    assert run(lane, sessions(target)).token_ids == plain.token_ids


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_counts_add_up_whatever_happens(data):
    # D01 and A28: any guesses, any stop, cancelled before any pass.
    width = 8
    law = next_is(lambda p: (p[-1] * 3 + len(p)) % width, width=width)
    guess = st.lists(st.integers(0, width - 1), max_size=6)
    plan = data.draw(st.lists(guess, min_size=1, max_size=12))
    stop_after = data.draw(st.one_of(st.none(), st.integers(0, 12)))
    passes = itertools.count()

    def pause():
        if stop_after is not None and next(passes) >= stop_after:
            raise Cancelled

    options = {
        "max_new_tokens": data.draw(st.integers(0, 14)),
        "end_ids": data.draw(st.lists(st.integers(0, width - 1), max_size=1)),
        "stop_strings": data.draw(
            st.sampled_from([(), ("\u0101\u0102",), ("\u0103", "\u0104\u0105")])
        ),
    }
    proposer = Guesses(lambda text, r: plan[r % len(plan)])
    lane = make_lane([1, 2], proposer=proposer, draft_length=6, **options)
    repetition = run(lane, sessions(ScriptedLM(law)), pause=pause)
    plain = run(make_lane([1, 2], **options), sessions(ScriptedLM(law)))
    assert violations(repetition) == []
    assert counts(repetition).committed == len(repetition.token_ids)
    assert repetition.token_ids == plain.token_ids[: len(repetition.token_ids)]
    assert (repetition.finish == "cancelled") or repetition.token_ids == plain.token_ids
    if repetition.finish != "cancelled":
        assert repetition.text == plain.text


def test_a_round_given_up_enters_no_figure():
    # A28: stopped between the draft's third pass and its fourth.
    draft, target = ScriptedLM(next_is(counting)), ScriptedLM(next_is(counting))
    lane = make_lane([10], proposer=draft_model(width=64), max_new_tokens=20)
    passes = itertools.count()

    def pause():
        if next(passes) == 5:
            raise Cancelled

    repetition = run(lane, sessions(target, draft), pause=pause)
    assert repetition.finish == "cancelled"
    assert repetition.rounds == []
    assert isinstance(repetition.abandoned, Abandoned)
    assert repetition.abandoned.drafted == 3
    again = run(
        make_lane([10], proposer=draft_model(width=64), max_new_tokens=20), sessions(target, draft)
    )
    assert again.token_ids == list(range(11, 31))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_numbers_that_cannot_be_used_end_the_lane_with_a_reason(bad):
    # A29, A07: what came before stays.
    def law(prefix):
        logits = next_is(counting)(prefix)
        if len(prefix) == 6:
            logits[3] = bad
        return logits

    lane = make_lane([10], max_new_tokens=20)
    seen: list = []
    with pytest.raises(Problem, match="at token 6"):
        seen.extend(_events(lane, sessions(ScriptedLM(law))))
    assert isinstance(seen[-1], LaneEnded)
    assert seen[-1].finish == "failed"
    assert lane.text.ids == [10, 11, 12, 13, 14, 15]


def test_a_draft_model_with_unusable_numbers_is_named():
    broken = ScriptedLM(lambda prefix: [math.nan] * 64)
    lane = make_lane([10], proposer=draft_model(width=64))
    with pytest.raises(Problem, match="draft model gave numbers"):
        list(_events(lane, sessions(ScriptedLM(next_is(counting)), broken)))


def test_a_draft_with_a_short_context_falls_back_to_plain_rounds():
    # A30.
    draft, target = ScriptedLM(next_is(counting)), ScriptedLM(next_is(counting))
    lane = make_lane([10] * 28, proposer=draft_model(width=64, context=32), max_new_tokens=20)
    repetition = run(lane, sessions(target, draft))
    assert repetition.token_ids == [(11 + i) % 60 for i in range(20)]
    assert max(len(cache.ids) for cache in draft.caches) <= 32
    assert [(r.limit, r.limited_by) for r in repetition.rounds[:2]] == [
        (4, "draft length"),
        (0, "draft's context"),
    ]
    assert {r.limited_by for r in repetition.rounds[1:-1]} == {"draft's context"}
    assert not any(r.drafted or r.draft_stop for r in repetition.rounds[1:])


def test_padded_vocabularies_of_different_widths():
    # A20: the draft wants id 62, which is padding; the target writes id 61, which the draft lacks.
    law = next_is(lambda p: 61 if len(p) == 4 else counting(p), width=64)
    target = ScriptedLM(law)
    draft = ScriptedLM(lambda p: [0.0] * 62 + [50.0, 0.0] if len(p) % 2 else next_is(counting)(p))
    lane = make_lane([10], proposer=draft_model(width=64, shared=58, rows=60), max_new_tokens=12)
    repetition = run(lane, sessions(target, draft))
    plain = run(make_lane([10], max_new_tokens=12), sessions(ScriptedLM(law)))
    assert repetition.token_ids == plain.token_ids
    guessed = [t.id for r in repetition.rounds for t in (*r.committed, *r.thrown) if t.source]
    assert all(token < 58 for token in guessed)
    after_61 = next(
        r for r in repetition.rounds if r.draft_stop.startswith("the draft model does not know")
    )
    assert after_61.drafted == 0
    assert all(61 not in cache.ids for cache in draft.caches)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.0])
def test_the_same_seed_gives_the_same_text_and_another_seed_another(temperature):
    # A26, A27.
    target, draft = tiny_llama(1), tiny_llama(1, noise=0.05)

    def ids(seed):
        sampling = Sampling(temperature=temperature, seed=seed)
        lane = make_lane(
            [3, 1],
            proposer=draft_model(width=64, sampling=sampling),
            sampling=sampling,
            max_new_tokens=40,
        )
        return run(lane, sessions(target, draft)).token_ids

    first = ids(1)
    assert ids(2) != first
    assert ids(1) == first


def test_filters_hold_on_verified_rows_too():
    # A18: min-p .1 of .9 keeps ids 0 and 1 only... and never id 3, however often it is proposed.
    law = [math.log(p) for p in (0.9, 0.06, 0.03, 0.01)]
    sampling = Sampling(temperature=1.0, min_p=0.05, seed=3)
    lane = make_lane(
        [0], proposer=Guesses(lambda t, r: [3, 0, 3, 1]), sampling=sampling, max_new_tokens=200
    )
    repetition = run(lane, Script(lambda prefix: law))
    assert set(repetition.token_ids) == {0, 1}


def test_time_between_commits_is_not_the_engines():
    # D09, D02: a slow consumer and the other lane's work do not count.
    clock = FakeClock()

    class Timed(Script):
        def answer(self, request):
            clock.spend(1.0 if isinstance(request, Read) else 0.0)
            return super().answer(request)

    lane = make_lane([10], clock=clock, max_new_tokens=5)
    for event in _events(lane, Timed(next_is(counting))):
        clock.spend(100.0)
        if type(event).__name__ == "RoundCommitted":
            assert event.round.phases.total == pytest.approx(1.0)
            assert event.round.phases.verify == pytest.approx(1.0)
        if type(event).__name__ == "FirstToken":
            assert event.seconds == pytest.approx(1.0)


def test_a_long_prompt_is_read_in_chunks():
    target = ScriptedLM(next_is(counting))
    lane = make_lane([1] * 1300, max_new_tokens=2)
    events = list(_events(lane, sessions(target)))
    assert target.widths == [512, 512, 276, 1]
    assert [e.done for e in events if type(e).__name__ == "PromptRead"] == [512, 1024]


def test_a_long_prompt_is_read_in_chunks_by_the_draft_too():
    target, draft = ScriptedLM(next_is(counting)), ScriptedLM(next_is(counting))
    lane = make_lane([1] * 1300, proposer=draft_model(width=64), draft_length=2, max_new_tokens=4)
    repetition = run(lane, sessions(target, draft))
    assert draft.widths[:3] == [512, 512, 277]
    assert repetition.rounds[0].drafted == 2


def test_reading_what_is_unread_is_no_guess():
    target, draft = ScriptedLM(next_is(counting)), ScriptedLM(next_is(counting))
    lane = make_lane([1] * 1300, proposer=draft_model(width=64), max_new_tokens=20)
    passes = itertools.count()

    def pause():
        if next(passes) == 6:  # three for the target's prompt, then two chunks and a guess
            raise Cancelled

    repetition = run(lane, sessions(target, draft), pause=pause)
    assert draft.widths == [512, 512]
    assert repetition.abandoned.drafted == 0


def test_the_context_ends_a_text():
    lane = make_lane(
        [1] * 10, proposer=Guesses(lambda t, r: [0] * 4), context=14, max_new_tokens=50
    )
    target = ScriptedLM(next_is(counting))
    repetition = run(lane, sessions(target, capacity=14))
    assert repetition.finish == "context"
    assert len(repetition.token_ids) == 14 - 10
    assert repetition.rounds[0].limited_by == "context"


def test_ngram_takes_the_longest_match_at_its_most_recent_place():
    lane = make_lane(
        [1, 2, 3, 9, 9, 2, 3, 7, 8, 2],
        proposer=Ngram(shortest=1, longest=3, end_ids=[]),
        draft_length=3,
    )
    asked = []

    class Watch(Script):
        def answer(self, request):
            asked.append(list(request.block.ids) if request.block else [])
            return super().answer(request)

    # The prompt pass yields 3: "2 3" was last followed by 7 8 2.
    run(lane, Watch(next_is(lambda p: 3 if len(p) == 10 else 0)))
    assert asked[1] == [7, 8, 2]


def test_ngram_looks_in_what_was_written_and_stops_at_the_end_of_text():
    ngram = Ngram(shortest=2, longest=4, end_ids=[END])
    draft = _proposed(ngram, [1, 2, END, 5, 6, 1, 2], 4)
    assert draft == [END]
    assert _proposed(ngram, [1, 2, END, 5, 6, 1, 2, 8, 1, 2], 4) == [8, 1, 2]
    assert _proposed(Ngram(shortest=3, longest=4, end_ids=[]), [1, 2, 3, 1, 2], 4) == []


def _proposed(ngram, text, limit):
    asking = ngram.propose(text, limit=limit, round_=0)
    with pytest.raises(StopIteration) as done:
        next(asking)
    return done.value.value.block.ids


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(1, 3), st.integers(1, 3))
def test_ngram_equals_a_plain_search(text, shortest, extra):
    longest = shortest + extra - 1
    expected = []
    for size in range(longest, shortest - 1, -1):
        starts = [s for s in range(len(text) - size) if text[s : s + size] == text[-size:]]
        if starts and size <= len(text):
            expected = text[starts[-1] + size : starts[-1] + size + 4]
            break
    assert _proposed(Ngram(shortest=shortest, longest=longest, end_ids=[]), text, 4) == expected


def test_ngram_refuses_bounds_that_cross():
    with pytest.raises(Problem, match="longer than the longest"):
        Ngram(shortest=5, longest=2, end_ids=[])


def test_what_a_rule_did_not_use_is_null():
    greedy = run(
        make_lane([10], proposer=Guesses(lambda t, r: [t[-1] + 1, 5, 6])), Script(next_is(counting))
    )
    token = greedy.rounds[0].committed[0]
    assert (token.target_probability, token.draw, token.accept_probability) == (None, None, None)
    assert token.source == "guesses"
    sampled = run(
        make_lane(
            [10], proposer=Guesses(lambda t, r: [5, 6, 7]), sampling=Sampling(temperature=1.0)
        ),
        Script(next_is(counting)),
    )
    rejected, ignored = sampled.rounds[0].thrown[:2]
    assert rejected.status == "rejected"
    assert rejected.draw is not None
    assert rejected.accept_probability == pytest.approx(rejected.target_probability)
    assert rejected.draft_probability == 1.0
    assert (ignored.status, ignored.draw, ignored.target_probability) == ("ignored", None, None)
    corrected = sampled.rounds[0].committed[0]
    assert corrected.status == "corrected"
    assert corrected.source is None
    assert corrected.target_probability > 0.5


def test_full_detail_shows_the_likeliest_tokens():
    lane = make_lane(
        [10],
        proposer=Guesses(lambda t, r: [5, 6]),
        sampling=Sampling(temperature=1.0),
        detail="full",
    )
    round_ = run(lane, Script(next_is(counting))).rounds[0]
    corrected = round_.committed[0]
    assert corrected.inspection.target[0].id == corrected.id
    assert corrected.inspection.target[0].probability == pytest.approx(corrected.target_probability)
    assert corrected.inspection.residual[0].id == corrected.id
    assert round_.thrown[0].inspection.target[0].id == corrected.id


def test_a_session_refuses_to_outgrow_itself():
    session = Session(ScriptedLM(next_is(counting)), 4)
    with pytest.raises(Problem, match="outgrown its session of 4"):
        session.read([1, 2, 3, 4, 5], rows=1)
    assert isinstance(Sessions({"target": session}).byte_count, int)
