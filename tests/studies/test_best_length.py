"""The best length for this machine: from measured costs and what was kept so far."""

import pytest

from app.run.cost import PassCosts
from app.run.draft_lengths import LENGTH_POLICIES
from app.run.settings import Sampling
from app.studies import run_costs
from app.studies.best_length import BestLength


def costs(seconds: dict[int, float], draft_step: float | None = 0.0) -> PassCosts:
    return PassCosts("target", "cpu", "fp32", "sdpa", 256, seconds, 9, "draft", draft_step)


FLAT = costs(dict.fromkeys(range(1, 10), 1.0))
STEEP = costs({width: float(width) for width in range(1, 10)}, 0.5)


def test_flat_costs_want_the_longest_draft_and_steep_ones_none():
    assert BestLength(FLAT, longest=4, prior=0.7, look_again=16).choose(0) == (4, "draft length")
    assert BestLength(STEEP, longest=4, prior=0.7, look_again=16).choose(0) == (0, "policy")


def test_it_follows_what_is_kept():
    # T(w) = 1 + 0.1·(w - 1), a step of the draft 0.1: by hand (1 + α + … + α^γ) / (1 + 0.2·γ).
    rising = costs({width: 1 + 0.1 * (width - 1) for width in range(1, 10)}, 0.1)
    policy = BestLength(rising, longest=8, prior=0.52, look_again=10_000)

    def by_hand(alpha):
        speedups = [sum(alpha**i for i in range(g + 1)) / (1 + 0.2 * g) for g in range(9)]
        return speedups.index(max(speedups))

    seen = []
    for drafted, accepted in [(2, 2)] * 20 + [(3, 0)] * 250:
        assert policy.choose(0)[0] == by_hand(policy.acceptance)
        policy.learn(drafted, accepted)
        seen.append(policy.choose(0)[0])
    assert max(seen) > 2
    assert 0 in seen[20:]
    # Kept 0.52 · 4 + 40, tested 4 + 40 + 250.
    assert policy.acceptance == pytest.approx(42.08 / 294)


def test_without_guesses_one_is_tried_now_and_then():
    policy = BestLength(STEEP, longest=4, prior=0.7, look_again=3)
    chosen = []
    for round_ in range(9):
        chosen.append(policy.choose(round_)[0])
        policy.learn(chosen[-1], 0)
    assert chosen == [0, 0, 0, 1, 0, 0, 0, 1, 0]


def test_a_kept_draft_has_no_test_beyond_its_end():
    policy = BestLength(FLAT, longest=4, prior=0.0, look_again=16)
    policy.learn(3, 3)
    policy.learn(0, 0)
    assert policy.acceptance == pytest.approx(3 / 7)


@pytest.mark.parametrize("method", ["ngram", "suffix", "draft-model"])
@pytest.mark.parametrize("policy", LENGTH_POLICIES)
def test_every_policy_writes_the_baselines_text(run_tiny, policy, method, monkeypatch):
    asked = []

    def known(pair, length, **others):
        asked.append(length)
        return costs(dict.fromkeys(range(1, 10), 1.0), 0.01)

    monkeypatch.setattr(run_costs, "costs_of", known)
    options = {"ngram": {"shortest": 1}, "suffix": {"cached": 0}}.get(method, {})
    record = run_tiny(
        method=method, method_options=options, draft_length=5, draft_length_policy=policy
    )
    fast, slow = (record.repetitions(lane)[0] for lane in ("speculative", "baseline"))
    assert record.outcome == "finished"
    assert fast.token_ids == slow.token_ids
    assert all(round_.limit <= 5 for round_ in fast.rounds)
    assert len(asked) == (2 if policy == "best" else 1)  # before the lanes, and behind them


@pytest.mark.parametrize("rule", ["coupled", "block", "sample-match", "typical", "fly"])
def test_every_rule_runs(run_tiny, rule):
    options = {"fly": {"window": 2}}.get(rule, {})
    record = run_tiny(
        method="draft-model", draft_length=3, rule=rule, rule_options=options,
        sampling=Sampling(temperature=0.8, seed=4),
    )  # fmt: skip
    assert record.outcome == "finished"
    fast, slow = (record.repetitions(lane)[0] for lane in ("speculative", "baseline"))
    assert (fast.token_ids == slow.token_ids) or rule != "coupled"
    assert record.lossless == (rule in ("coupled", "block", "sample-match"))
