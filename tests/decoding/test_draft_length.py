"""Draft lengths: each schedule by hand, and stops that never drop a guess that was drawn."""

import math

import pytest
import torch

from app.decoding.draft_length import Fixed, Heuristic
from app.decoding.draft_stop import ConfidenceStop, EntropyStop
from app.decoding.proposers.draft_head import DraftHead, HeadSetup
from app.run.settings import Sampling
from toys import Script, ScriptedLM, draft_model, make_lane, next_is, run, sessions


def lengths(policy, rounds):
    """What a policy chooses before each round, of rounds as (drafted, accepted)."""
    chosen = []
    for round_, (drafted, accepted) in enumerate(rounds):
        chosen.append(policy.choose(round_))
        policy.learn(drafted, accepted)
    return [*chosen, policy.choose(len(rounds))]


def test_the_heuristic_adds_two_and_takes_one_within_its_bounds():
    rounds = [(4, 4), (6, 2), (5, 5), (7, 7), (8, 8), (8, 0)]
    found = lengths(Heuristic(start=4, longest=8), rounds)
    assert [length for length, _ in found] == [4, 6, 5, 7, 8, 8, 7]
    assert dict(found)[8] == "draft length"
    assert found[0] == (4, "policy")
    down = lengths(Heuristic(start=2, longest=8), [(2, 0), (1, 0), (1, 0), (0, 0)])
    assert [length for length, _ in down] == [2, 1, 1, 1, 1]
    assert Heuristic(start=9, longest=3).choose(0) == (3, "draft length")


def test_a_fixed_length_learns_nothing():
    assert lengths(Fixed(3), [(3, 0), (3, 3)]) == [(3, "draft length")] * 3


def test_the_entropy_bound_by_hand():
    law = torch.tensor([0.5, 0.25, 0.25, 0.0])
    bound = 1 - math.sqrt(0.2 * 1.5 * math.log(2))
    assert EntropyStop(0.2, bound + 1e-4).before(lambda: law)
    assert not EntropyStop(0.2, bound - 1e-4).before(lambda: law)
    assert not EntropyStop(0.2, 1.0).before(lambda: torch.tensor([0.0, 1.0]))
    assert not EntropyStop(0.2, 0.9).behind(torch.tensor(0.0))


def chain(stop, *, sampling: Sampling = Sampling()):
    """A target and a draft that go on by one; the draft is in doubt behind every fourth token."""

    def unsure(prefix):
        logits = [0.0] * 64
        logits[(prefix[-1] + 1) % 64] = 12.0 if prefix[-1] % 4 else 2.0
        return logits

    lane = make_lane(
        [10],
        proposer=draft_model(width=64, stop=stop, sampling=sampling),
        draft_length=6,
        max_new_tokens=24,
        sampling=sampling,
    )
    target = ScriptedLM(next_is(lambda prefix: (prefix[-1] + 1) % 64))
    return run(lane, sessions(target, ScriptedLM(unsure)))


def test_a_guess_below_the_threshold_ends_the_draft_and_is_tested():
    # e² / (e² + 63) is 0.105: behind 12, 16, 20 … the draft is unsure of what comes.
    found = chain(ConfidenceStop(0.4))
    assert found.token_ids == list(range(11, 35))
    first = found.rounds[0]
    assert first.draft_stop == "the draft was unsure"
    assert [token.id for token in first.committed] == [12, 13, 14]  # 13, the unsure one, is kept
    assert {round_.drafted for round_ in found.rounds[:-1]} <= {1, 2, 3, 4}


def test_a_law_of_high_entropy_ends_the_draft_before_the_guess():
    found = chain(EntropyStop(0.2, 0.5))
    assert found.token_ids == list(range(11, 35))
    first = found.rounds[0]
    assert first.draft_stop == "the draft's entropy was high"
    assert [token.id for token in first.committed] == [12, 13]  # 13 is the target's own
    assert first.drafted == 1


def test_a_draft_may_end_before_its_first_guess():
    found = chain(EntropyStop(0.2, 1.0))
    assert {round_.drafted for round_ in found.rounds} == {0}
    assert found.token_ids == list(range(11, 35))


def drafted(proposer, text, *, limit):
    """A draft behind this text, of a model that goes on by one."""
    script = Script(next_is(lambda prefix: (prefix[-1] + 1) % 64))
    asking, answer = proposer.propose(text, limit=limit, round_=0), None
    while True:
        try:
            request = asking.send(answer)
        except StopIteration as ended:
            return ended.value
        answer = script.answer(request)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("stop", [None, ConfidenceStop(0.0), EntropyStop(0.2, 0.0)])
@pytest.mark.parametrize("kind", ["draft model", "head"])
def test_a_guess_computes_its_law_at_most_once(kind, stop, temperature, monkeypatch):
    sampling = Sampling(temperature=temperature)
    if kind == "head":
        proposer = DraftHead(
            HeadSetup(
                sampling=sampling, ids=torch.arange(64), width=64, prompt_length=1, end_ids=()
            ),
            stop=stop,
        )
    else:
        proposer = draft_model(width=64, sampling=sampling, stop=stop)
    computed = []
    softmax = torch.softmax
    monkeypatch.setattr(
        torch, "softmax", lambda *given, **named: computed.append(0) or softmax(*given, **named)
    )
    assert len(drafted(proposer, [1, 2], limit=5)) == 5
    assert len(computed) == (0 if stop is None and sampling.greedy else 5)


@pytest.mark.parametrize("stop", [ConfidenceStop(0.4), EntropyStop(0.2, 0.5)])
def test_stops_see_the_law_that_guesses_are_drawn_from(stop):
    # At top-k 1 the warped law is certain, so nothing stops a draft.
    found = chain(stop, sampling=Sampling(temperature=1.0, top_k=1))
    assert not any(round_.draft_stop for round_ in found.rounds)
