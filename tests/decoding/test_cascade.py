"""A draft model helped by n-grams guesses as it would alone, by the same laws, in fewer passes."""

from __future__ import annotations

import pytest
import torch
from drafts import TableDraft, all_drafts, answered, warp_of

from app.decoding.draft_stop import ConfidenceStop, EntropyStop
from app.decoding.proposers.cascade import Cascade
from app.decoding.proposers.draft_model import DraftSetup
from app.decoding.proposers.ngram import Ngram
from app.decoding.verifiers import make_verifier
from app.decoding.verifiers.block import BlockVerification
from app.decoding.verifiers.exact import Exact
from app.models.pair import DraftWidths
from app.run.identities import violations
from app.run.settings import Sampling
from oracles import law_of_drafts, law_of_text, random_table, total_variation
from toys import FakeClock, ScriptedLM, draft_model, make_lane, next_is, run, sessions, tiny_llama

PENALTIES = {"repetition_penalty": 1.2, "presence_penalty": 0.4}
REPEATING = [3, 1, 4, 1, 5, 3, 1, 4, 1, 5, 3, 1, 4]


def cascade(sampling=Sampling(), *, width=64, shortest=1, prompt=13, **changes):
    fixed = {
        "widths": DraftWidths(width, width, width),
        "context": 4096,
        "device": torch.device("cpu"),
        "prompt_length": prompt,
        "end_ids": (),
    }
    ngram = Ngram(shortest=shortest, longest=3, end_ids=())
    return Cascade(ngram, DraftSetup(sampling=sampling, **{**fixed, **changes}))


def decided(repetition):
    """Everything that was guessed and decided, whoever guessed it and however long it took."""
    return [
        (
            [plain(token) for token in round_.committed],
            [plain(token) for token in round_.thrown],
            (round_.limit, round_.limited_by, round_.draft_stop),
        )
        for round_ in repetition.rounds
    ]


def plain(token):
    return token.id, token.text, token.status


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(**PENALTIES),
        Sampling(temperature=0.7, seed=3),
        Sampling(temperature=0.9, top_p=0.9, seed=4, **PENALTIES),
    ],
    ids=["greedy", "greedy, penalised", "drawn", "drawn, penalised"],
)
@pytest.mark.parametrize(
    ("rule", "stop"),
    [
        ("exact", None),
        ("exact", ConfidenceStop(0.04)),
        ("exact", EntropyStop(0.2, 0.0985)),
        ("block", None),
        ("coupled", None),
        ("sample-match", None),
    ],
)
def test_it_guesses_what_the_draft_model_guesses_alone(sampling, stop, rule):
    target, draft = tiny_llama(5), tiny_llama(5, noise=0.03)
    fixed = {"shared_noise": rule == "coupled", "stop": stop}
    alone = draft_model(width=64, sampling=sampling, prompt_length=len(REPEATING), **fixed)
    found = []
    for proposer in (alone, cascade(sampling, **fixed)):
        lane = make_lane(
            REPEATING,
            proposer=proposer,
            sampling=sampling,
            draft_length=6,
            max_new_tokens=40,
            verifier=make_verifier(rule, sampling),
        )
        found.append(run(lane, sessions(target, draft)))
        assert violations(found[-1]) == []
    assert decided(found[0]) == decided(found[1])
    assert {t.source for r in found[1].rounds for t in r.committed} == {"cascade", None}


@pytest.mark.parametrize("rule", [Exact(), BlockVerification()], ids=["exact", "block"])
@pytest.mark.parametrize("seed", range(3))
def test_its_drafts_and_the_text_keep_their_laws(rule, seed, monkeypatch):
    # Every draw of the inner loop is enumerated; some passes read a copy that is then thrown away.
    target, table = random_table(seed), random_table(seed + 1000)
    monkeypatch.setattr("app.decoding.proposers.cascade.warp", warp_of(table))
    text = [2, 1, 3, 2, 1]
    model = TableDraft(table, prompt=len(text))
    proposer = cascade(Sampling(temperature=1.0), width=4, prompt=len(text))
    drafts = list(all_drafts(proposer, model, text, monkeypatch, laws=table))
    assert set(model.widths) == {1, 2}
    often: dict = {}
    for guesses, weight, _ in drafts:
        often[guesses] = often.get(guesses, 0.0) + weight
    said = {g: float(table[()][g[0]] * table[g[:1]][g[1]]) for g in often}
    assert sum(said.values()) == pytest.approx(1.0, abs=1e-12)
    assert total_variation(often, said) < 1e-12
    assert total_variation(law_of_drafts(rule, target, drafts), law_of_text(target)) < 1e-12


class KeepsCopies(Cascade):
    """The fault of taking a copy for a guess of the draft model's."""

    def _keep(self, made, ids, scores, *, copied, **rest):
        drawn = list(copied)
        ended = super()._keep(made, ids, scores, copied=copied, **rest)
        ids[-1:] = drawn[:1] or ids[-1:]
        return ended


def test_a_copy_that_is_kept_unasked_is_seen(monkeypatch):
    target, table = random_table(1), random_table(1001)
    monkeypatch.setattr("app.decoding.proposers.cascade.warp", warp_of(table))
    text = [2, 1, 3, 2, 1]
    proposer = cascade(Sampling(temperature=1.0), width=4, prompt=len(text))
    spoilt = KeepsCopies(proposer._ngram, _made_of(4, len(text)))
    drafts = all_drafts(spoilt, TableDraft(table, len(text)), text, monkeypatch, laws=table)
    assert total_variation(law_of_drafts(Exact(), target, drafts), law_of_text(target)) > 1e-2


def _made_of(width, prompt):
    return DraftSetup(
        sampling=Sampling(temperature=1.0),
        widths=DraftWidths(width, width, width),
        context=4096,
        device=torch.device("cpu"),
        prompt_length=prompt,
        end_ids=(),
    )


def counting(prefix):
    """A text that comes back to its start after seven tokens."""
    return (prefix[-1] + 1) % 7


def test_a_text_that_repeats_itself_takes_a_pass_a_draft():
    draft = ScriptedLM(next_is(counting))
    target = ScriptedLM(next_is(counting))
    lane = make_lane([0], proposer=cascade(), draft_length=4, max_new_tokens=61)
    repetition = run(lane, sessions(target, draft))
    assert repetition.token_ids == [(1 + place) % 7 for place in range(61)]
    assert {round_.drafted for round_ in repetition.rounds[:-1]} == {4}
    # The first seven tokens are new. From then on four guesses are one pass: over the last guess of
    # the draft before and the bonus behind it, which it has not read yet, and three copies.
    assert set(draft.widths[-6:]) == {5}
    assert len(draft.widths) < 2.2 * len(repetition.rounds)


@pytest.mark.parametrize("length", range(1, 9))
@pytest.mark.parametrize("penalties", [{}, PENALTIES])
def test_greedy_texts_are_those_without_guesses(length, penalties):
    sampling = Sampling(**penalties)
    target, draft = tiny_llama(5), tiny_llama(5, noise=0.05)
    texts = [
        run(
            make_lane(
                REPEATING,
                proposer=proposer,
                sampling=sampling,
                draft_length=length,
                max_new_tokens=30,
            ),
            sessions(target, draft),
        ).token_ids
        for proposer in (None, cascade(sampling))
    ]
    assert texts[0] == texts[1]


def test_every_pass_of_the_draft_is_timed_as_one():
    clock = FakeClock()
    draft, target = ScriptedLM(next_is(counting)), ScriptedLM(next_is(counting))
    forward = draft.forward

    def slow(*args, **named):
        clock.spend(0.25)
        return forward(*args, **named)

    draft.forward = slow
    lane = make_lane([0], proposer=cascade(), max_new_tokens=41, clock=clock)
    rounds = run(lane, sessions(target, draft)).rounds
    spent = sum(round_.phases.draft_calls for round_ in rounds)
    assert spent == pytest.approx(0.25 * len(draft.widths))
    assert rounds[0].phases.draft_prompt == 0.25
    assert sum(round_.phases.draft for round_ in rounds) == pytest.approx(spent - 0.25)


def test_copies_of_ids_that_the_draft_cannot_read_end_there():
    # The target writes 61 after every 5; the draft knows ids below 60.
    law = next_is(lambda p: 61 if p[-1] == 5 else 0 if p[-1] == 61 else p[-1] + 1)
    target, draft = ScriptedLM(law), ScriptedLM(next_is(lambda p: (p[-1] + 1) % 60))
    made = cascade(widths=DraftWidths(64, 60, 60))
    repetition = run(make_lane([0], proposer=made, max_new_tokens=40), sessions(target, draft))
    plain_text = run(make_lane([0], max_new_tokens=40), sessions(target)).token_ids
    assert repetition.token_ids == plain_text
    assert all(token < 60 for cache in draft.caches for token in cache.ids)


def test_a_draft_ends_at_an_end_of_text_and_at_its_context():
    draft, target = ScriptedLM(next_is(counting)), ScriptedLM(next_is(counting))
    made = cascade(end_ids=(3,))
    text = [0, 1, 2, 3, 4, 5, 6, 0, 1]
    ended = answered(made.propose(text, limit=6, round_=0), sessions(target, draft))
    assert ended.block.ids == [2, 3]
    assert ended.stop == "end of text"
    short = cascade(context=len(text) + 1)
    full = answered(short.propose(text, limit=6, round_=0), sessions(target, draft))
    assert full.block.ids == [2, 3]
    assert full.room == 2
    none = cascade(context=len(text) - 1)
    assert answered(none.propose(text, limit=6, round_=0), sessions(target, draft)).room == 0


def test_unusable_numbers_of_the_draft_are_told_of():
    broken = ScriptedLM(lambda prefix: [float("nan")] * 64)
    draft = answered(
        cascade(Sampling(temperature=1.0)).propose([1, 2], limit=2, round_=0),
        sessions(broken, broken),
    )
    assert not bool(torch.isfinite(draft.peaks).all())
