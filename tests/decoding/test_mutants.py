"""Faults planted in loop, session and commit: the checks must see each of them."""

import pytest
import torch
from scipy.stats import chi2

from app.decoding.decision import Decision
from app.decoding.drivers import Sessions, run_lane
from app.decoding.loop import decode
from app.decoding.sampling import Penalties
from app.models.session import Session
from app.run.identities import violations
from app.run.settings import Sampling
from oracles import check_copy_draft
from toys import (
    Guesses,
    Script,
    ScriptedLM,
    draft_model,
    make_lane,
    next_is,
    run,
    sessions,
    tiny_llama,
)


class ForgetsItsLastGuess(Session):
    """After full acceptance it reads the bonus, but not its own last guess before it."""

    def _feed_with_block(self, fresh, block, *, rows, settled):
        if self._cache.length > 3 and len(fresh) == 2:
            fresh = fresh[1:]
        return super()._feed_with_block(fresh, block, rows=rows, settled=settled)


def test_a_draft_cache_one_short_is_seen():
    check_copy_draft(3, rounds=12)
    with pytest.raises(AssertionError):
        check_copy_draft(3, rounds=12, session=ForgetsItsLastGuess)


class NeverRewinds(Session):
    """Leaves rejected tokens where they are."""

    def _crop(self, length):
        self._settled = min(self._settled, length)


def test_a_cache_that_is_not_rewound_is_seen():
    target = tiny_llama(1)
    wrong = Guesses(lambda text, r: [(text[-1] + 7) % 60] * 3)
    plain = run(make_lane([3, 1, 4], max_new_tokens=20), sessions(target))
    lane = make_lane([3, 1, 4], proposer=wrong, max_new_tokens=20)
    spoilt = run(lane, Sessions({"target": NeverRewinds(target, 600)}))
    assert spoilt.token_ids != plain.token_ids


def test_a_missing_bonus_is_seen(monkeypatch):
    check_copy_draft(2, rounds=5)

    def without_bonus(self):
        whole = self.accepted == len(self.guesses) > 0
        return self.guesses if whole else [*self.guesses[: self.accepted], self.next]

    monkeypatch.setattr(Decision, "block", property(without_bonus))
    with pytest.raises(AssertionError):
        check_copy_draft(2, rounds=5)


def test_rows_that_are_off_by_one_are_seen():
    # A10: the row of guess i compared with guess i + 1.
    class OffByOne(Script):
        def answer(self, request):
            reading = super().answer(request)
            reading.logits = reading.logits.roll(1, 0) if request.rows > 1 else reading.logits
            return reading

    law = next_is(lambda p: (p[-1] + 1) % 60)
    guess = Guesses(lambda text, r: [text[-1] + 1, text[-1] + 2])
    plain = run(make_lane([10], max_new_tokens=12), Script(law))
    assert (
        run(make_lane([10], proposer=guess, max_new_tokens=12), Script(law)).token_ids
        == plain.token_ids
    )
    spoilt = run(make_lane([10], proposer=guess, max_new_tokens=12), OffByOne(law))
    assert spoilt.token_ids != plain.token_ids


def test_penalties_that_skip_the_guesses_are_seen(monkeypatch):
    sampling = Sampling(presence_penalty=2.0, repetition_penalty=1.5)
    target = tiny_llama(5)
    plain = run(make_lane([7, 7], sampling=sampling, max_new_tokens=30), sessions(target))
    apply = Penalties.apply

    def blind(self, logits, text, block):
        return apply(self, logits, text, None)

    monkeypatch.setattr(Penalties, "apply", blind)
    lane = make_lane(
        [7, 7],
        proposer=draft_model(width=64, sampling=sampling, prompt_length=2),
        sampling=sampling,
        max_new_tokens=30,
    )
    spoilt = run(lane, sessions(target, tiny_llama(5)))
    assert spoilt.token_ids != plain.token_ids


def test_counts_that_are_wrong_are_seen():
    import msgspec

    repetition = run(
        make_lane([10], proposer=Guesses(lambda t, r: [t[-1] + 1, 5]), max_new_tokens=6),
        Script(next_is(lambda p: p[-1] + 1)),
    )
    assert violations(repetition) == []
    round_ = repetition.rounds[0]
    for spoilt in (
        msgspec.structs.replace(round_, thrown=()),
        msgspec.structs.replace(round_, thrown=(*round_.thrown, *round_.thrown)),
        msgspec.structs.replace(round_, committed=round_.committed[:1]),
        msgspec.structs.replace(round_, limit=0),
    ):
        repetition.rounds[0] = spoilt
        assert violations(repetition) != []


def _pair_law(gamma: int, runs: int) -> dict[tuple[int, ...], int]:
    """Counts of the first two tokens behind the prompt pass, over many seeds."""
    p = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().tolist()
    p_after_0 = torch.tensor([0.1, 0.2, 0.3, 0.4]).log().tolist()
    q = torch.tensor([0.25, 0.25, 0.4, 0.1]).log().tolist()
    target = ScriptedLM(lambda prefix: p_after_0 if prefix[-1] == 0 else p)
    draft = ScriptedLM(lambda prefix: q)
    found: dict[tuple[int, ...], int] = {}
    for seed in range(runs):
        sampling = Sampling(temperature=1.0, seed=seed)
        lane = make_lane(
            [1],
            proposer=draft_model(width=4, sampling=sampling),
            sampling=sampling,
            draft_length=gamma,
            max_new_tokens=3,
        )
        for _ in run_lane(decode(lane), sessions(target, draft, capacity=8), lambda: None):
            pass
        key = tuple(lane.text.ids[2:4])
        found[key] = found.get(key, 0) + 1
    return found


def test_the_whole_loop_follows_the_targets_law():
    # Seeded, so it cannot flicker: Pearson's chi-square over 16 cells at 1e-4.
    runs = 4000
    p, after_0 = [0.5, 0.3, 0.15, 0.05], [0.1, 0.2, 0.3, 0.4]
    first = [sum(p[f] * (after_0 if f == 0 else p)[a] for f in range(4)) for a in range(4)]
    found = _pair_law(2, runs)
    statistic = 0.0
    for a in range(4):
        for b in range(4):
            expected = runs * first[a] * (after_0 if a == 0 else p)[b]
            statistic += (found.get((a, b), 0) - expected) ** 2 / expected
    assert statistic < chi2.ppf(1 - 1e-4, 15)
