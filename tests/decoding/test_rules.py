"""The lossless rules keep the target's law: every branch of a small world is summed."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial

import pytest
import torch

from app.decoding.contracts import Draft, Draws, TargetRows
from app.decoding.randomness import draw
from app.decoding.shared_noise import SharedNoise
from app.decoding.verifiers.block import BlockVerification
from app.decoding.verifiers.coupled import Coupled
from app.decoding.verifiers.exact import Exact
from app.decoding.verifiers.greedy import Greedy
from app.decoding.verifiers.sample_match import SampleMatch
from app.models.block import Block
from app.run.rules import RULES
from app.run.settings import Sampling
from oracles import (
    GAMMA,
    LENGTH,
    VOCABULARY,
    distance,
    law_of_text,
    random_table,
    rows_with,
    total_variation,
)

KINDS = ("sampled", "argmax", "point mass")
A, B = torch.tensor([1 / 3, 2 / 3]).double(), torch.tensor([2 / 3, 1 / 3]).double()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.lossless])
def test_a_lossless_rule_keeps_the_targets_law(name, seed, zeros, kind):
    assert DISTANCES[name](seed, kind=kind, zeros=zeros) < 1e-12


class KeepsWithItsWeight(BlockVerification):
    """The fault of taking P_i for the chance h_i at every place."""

    def verify(self, draft, rows, draws):
        verdict = super().verify(draft, rows, draws)
        weights = self.weights(verdict.target_probability / verdict.draft_probability)
        allowed = torch.cat([torch.tensor([True]), draws.accept < weights[1:]])
        accepted = torch.where(allowed, torch.arange(len(draft) + 1), 0).amax()
        left = self.left_over(draft, rows.law, weights)
        law = self._next_law(left, rows.law[accepted], accepted)
        return _changed(verdict, accepted=accepted, next_law=law, accept_probability=weights[1:])


class UnscaledResidual(BlockVerification):
    """The fault of drawing what token-by-token verification leaves over."""

    def verify(self, draft, rows, draws):
        verdict = super().verify(draft, rows, draws)
        left = self.left_over(draft, rows.law, torch.ones(len(draft) + 1).double())
        law = self._next_law(left, rows.law[verdict.accepted], verdict.accepted)
        return _changed(verdict, next_law=law)


def _changed(verdict, **fields):
    import dataclasses

    return dataclasses.replace(verdict, **fields)


@pytest.mark.parametrize("fault", [KeepsWithItsWeight(), UnscaledResidual()])
def test_naive_block_verification_is_seen(fault):
    assert max(distance(fault, seed, kind="sampled") for seed in range(4)) > 1e-3


def mean_accepted(rule, p, q, gamma: int) -> float:
    """The mean of accepted guesses where no token depends on those before it."""
    rows, mean = rows_with(p.expand(gamma + 1, -1)), 0.0
    for guesses in itertools.product(range(len(q)), repeat=gamma):
        draft = Draft(Block(list(guesses)), q.expand(gamma, -1))
        draws = Draws(torch.full((gamma,), 0.5).double(), torch.tensor([0.5]))
        chances = rule.verify(draft, rows, draws).accept_probability
        for pattern in itertools.product((True, False), repeat=gamma):
            weight = float(q[list(guesses)].prod())
            values = []
            for kept, chance in zip(pattern, chances.tolist(), strict=True):
                weight *= chance if kept else 1 - chance
                values.append(chance / 2 if kept else (1 + chance) / 2)
            draws = Draws(torch.tensor(values).double(), torch.tensor([0.5]))
            if weight:
                mean += weight * int(rule.verify(draft, rows, draws).accepted)
    return mean


def test_the_published_means_of_accepted_guesses():
    # Sun et al. 2024, section 3: 10/9 token by token, 11/9 as a block.
    assert mean_accepted(Exact(), A, B, 2) == pytest.approx(10 / 9)
    assert mean_accepted(BlockVerification(), A, B, 2) == pytest.approx(11 / 9)


@pytest.mark.parametrize("seed", range(3))
def test_a_block_keeps_no_fewer_guesses(seed):
    p, q = random_table(seed)[()], random_table(seed + 50)[()]
    token, block = (mean_accepted(rule, p, q, 3) for rule in (Exact(), BlockVerification()))
    assert block >= token - 1e-12


def test_a_block_keeps_guesses_whose_own_draws_fail():
    p = torch.tensor([[0.6, 0.4], [0.9, 0.1], [0.5, 0.5]], dtype=torch.float64)
    q = torch.tensor([[0.2, 0.8], [0.1, 0.9]], dtype=torch.float64)
    # The first guess has weight 1/2 and chance 1/2 at most; the second raises the weight to 1.
    draft = Draft(Block([1, 0]), q)
    verdict = BlockVerification().verify(
        draft, rows_with(p), Draws(torch.tensor([0.999, 0.5]).double(), torch.tensor([0.5]))
    )
    assert float(verdict.accept_probability[0]) < 0.999
    assert int(verdict.accepted) == 2


def sample_match_law(target, guesses, weight) -> dict:
    """What the rule makes of one draft, over every combination of the tokens it may draw."""
    rows = torch.stack([target[guesses[:place]] for place in range(LENGTH)])
    sums = rows.cumsum(-1)
    law: dict[tuple[int, ...], float] = {}
    for drawn in itertools.product(range(VOCABULARY), repeat=LENGTH):
        chance = weight
        for place, token in enumerate(drawn):
            chance *= float(rows[place, token])
        if not chance:
            continue
        hit = [float(sums[i, t] - rows[i, t] / 2) for i, t in enumerate(drawn)]
        draws = Draws(torch.tensor(hit[:-1]).double(), torch.tensor(hit[-1:]).double())
        verdict = SampleMatch().verify(Draft(Block(list(guesses))), rows_with(rows), draws)
        text = (*guesses[: int(verdict.accepted)], int(verdict.next))
        for rest in itertools.product(range(VOCABULARY), repeat=LENGTH - len(text)):
            whole, tail = (*text, *rest), 1.0
            for place in range(len(text), LENGTH):
                tail *= float(target[whole[:place]][whole[place]])
            law[whole] = law.get(whole, 0.0) + chance * tail
    return law


def drafts(seed: int, kind: str):
    """Every draft of GAMMA tokens with its chance: drawn from a law, or certain."""
    table = random_table(seed + 1000)
    for guesses in itertools.product(range(VOCABULARY), repeat=GAMMA):
        laws = [table[guesses[:place]] for place in range(GAMMA)]
        if kind == "sampled":
            chances = [float(law[token]) for law, token in zip(laws, guesses, strict=True)]
        else:
            chances = [float(law.argmax() == t) for law, t in zip(laws, guesses, strict=True)]
        if all(chances):
            stated = torch.stack(laws) if kind == "sampled" else None
            yield guesses, math.prod(chances), stated


def sample_match_distance(seed: int, *, kind: str, zeros: bool) -> float:
    target = random_table(seed, zeros=zeros)
    found = dict.fromkeys(law_of_text(target), 0.0)
    for guesses, weight, _ in drafts(seed, kind):
        for text, chance in sample_match_law(target, guesses, weight).items():
            found[text] += chance
    return total_variation(found, law_of_text(target))


def greedy_distance(seed: int, *, kind: str, zeros: bool) -> float:
    """The chance of a text that is not the greedy one."""
    target = random_table(seed, zeros=zeros)
    wrong = 0.0
    for guesses, weight, laws in drafts(seed, kind):
        rows = TargetRows(torch.stack([target[guesses[:i]] for i in range(LENGTH)]), Sampling())
        draws = Draws(torch.full((GAMMA,), 0.5).double(), torch.tensor([0.5]).double())
        verdict = Greedy().verify(Draft(Block(list(guesses)), laws), rows, draws)
        text = (*guesses[: int(verdict.accepted)], int(verdict.next))
        best = [int(target[text[:place]].argmax()) for place in range(len(text))]
        wrong += weight * (list(text) != best)
    return wrong


@dataclass(frozen=True)
class Race:
    """Shared noise of two tokens: token 0 arrives first if it does before this share of time."""

    shares: tuple[float, ...]

    def pick(self, law, tree=None):
        assert tree is None
        first = law[:, 0] / law.sum(-1)
        return (torch.tensor(self.shares[: len(law)]) > first).long()


def coupled_distance(seed: int, *, kind: str, zeros: bool) -> float:
    """Two tokens, whose race e_0 / (e_0 + e_1) is a uniform draw: every part of it is summed."""
    generator = torch.Generator().manual_seed(seed)
    prefixes = [p for size in range(LENGTH) for p in itertools.product((0, 1), repeat=size)]
    p, q = (torch.rand(len(prefixes), generator=generator).double().tolist() for _ in range(2))
    p = [0.0 if zeros and place == 0 else share for place, share in enumerate(p)]
    q = [float(share > 0.5) for share in q] if kind != "sampled" else q
    target, other = (
        {
            prefix: torch.tensor([share, 1 - share])
            for prefix, share in zip(prefixes, s, strict=True)
        }
        for s in (p, q)
    )
    edges = sorted({0.0, 1.0, *p, *q})
    parts = [((low + high) / 2, high - low) for low, high in itertools.pairwise(edges)]
    found = dict.fromkeys(itertools.product((0, 1), repeat=LENGTH), 0.0)
    for race in itertools.product(parts, repeat=LENGTH):
        noise, weight = Race(tuple(place for place, _ in race)), math.prod(w for _, w in race)
        guesses: tuple[int, ...] = ()
        for place in range(GAMMA):
            guesses += (int(Race(noise.shares[place:]).pick(other[guesses][None])),)
        laws = torch.stack([other[guesses[:i]] for i in range(GAMMA)])
        stated = None if kind == "point mass" else laws
        rows = rows_with(torch.stack([target[guesses[:i]] for i in range(LENGTH)]))
        draws = Draws(torch.full((GAMMA,), 0.5).double(), torch.tensor([0.5]).double(), noise)
        verdict = Coupled().verify(Draft(Block(list(guesses)), stated), rows, draws)
        text = (*guesses[: int(verdict.accepted)], int(verdict.next))
        while len(text) < LENGTH:  # plain rounds, with the noise of their places
            text += (int(Race(noise.shares[len(text) :]).pick(target[text][None])),)
        found[text] += weight
    own = {
        text: math.prod(float(target[text[:i]][token]) for i, token in enumerate(text))
        for text in found
    }
    return total_variation(found, own)


DISTANCES = {
    "exact": partial(distance, Exact()),
    "block": partial(distance, BlockVerification()),
    "sample-match": sample_match_distance,
    "coupled": coupled_distance,
    "greedy": greedy_distance,
}
"""Total variation between a lossless rule's texts and the target's law, every branch summed."""


def test_every_lossless_rule_is_summed_up():
    assert set(DISTANCES) == {name for name, rule in RULES.items() if rule.lossless}


def test_a_coupled_rule_without_the_same_noise_is_seen(monkeypatch):
    def pick(self, law, tree=None):
        return (torch.tensor(self.shares[: len(law)]) > (law[:, 0] + 0.1)).long()

    monkeypatch.setattr(Race, "pick", pick)
    assert coupled_distance(1, kind="sampled", zeros=False) > 1e-3


@pytest.mark.parametrize("rule", [SampleMatch(), Exact(), BlockVerification()])
def test_a_certain_guess_is_kept_with_the_targets_probability(rule):
    p = torch.tensor([[0.1, 0.6, 0.3], [0.2, 0.2, 0.6]], dtype=torch.float64)
    draws = Draws(torch.tensor([0.5]).double(), torch.tensor([0.5]))
    verdict = rule.verify(Draft(Block([1])), rows_with(p), draws)
    assert verdict.accept_probability.tolist() == [pytest.approx(0.6)]


def test_the_noise_of_a_place_is_that_of_its_seed_and_place_alone():
    noise = SharedNoise(11, 40).times(3, 6, device=torch.device("cpu"))
    assert torch.equal(noise[2], SharedNoise(11, 42).times(1, 6, device=torch.device("cpu"))[0])
    expected = -torch.tensor(draw(11, "shared", 41, 5), dtype=torch.float64).log()
    assert float(noise[1, 5]) == float(expected)
    others = [SharedNoise(12, 40), SharedNoise(11, 41), SharedNoise(-11, 40)]
    assert all(not torch.equal(o.times(1, 6, device=torch.device("cpu"))[0], noise[0])
               for o in others)  # fmt: skip


def test_first_arrivals_follow_the_law_and_meet_as_often_as_the_paper_says():
    count = 40_000
    p, q = torch.tensor([0.5, 0.3, 0.15, 0.05, 0.0]), torch.tensor([0.2, 0.3, 0.1, 0.2, 0.2])
    own = SharedNoise(3, 0).pick(p.expand(count, -1))
    guessed = SharedNoise(3, 0).pick(q.expand(count, -1))
    seen = torch.bincount(own, minlength=5)
    assert int(seen[4]) == 0
    chi = float((((seen - count * p) ** 2)[:4] / (count * p[:4])).sum())
    assert chi < 21.1  # the 1e-4 quantile at 3 degrees of freedom
    meets = sum(1 / float(torch.maximum(p / p[x], q / q[x]).sum()) for x in range(4))
    deviation = (meets * (1 - meets) / count) ** 0.5
    assert abs(float((own == guessed).double().mean()) - meets) < 4 * deviation


@pytest.mark.parametrize("guesses", [[], [0], [2, 1], [1, 1, 1, 1]])
def test_the_coupled_rule_writes_the_same_tokens_whatever_was_guessed(guesses):
    # The law of a row depends on the row alone here, so the target's own tokens are known.
    p = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
    own = SharedNoise(5, 100).pick(p.expand(5, -1)).tolist()
    rows = rows_with(p.expand(len(guesses) + 1, -1))
    draws = Draws(torch.full((len(guesses),), 0.5), torch.tensor([0.5]), SharedNoise(5, 100))
    verdict = Coupled().verify(Draft(Block(guesses)), rows, draws)
    text = [*guesses[: int(verdict.accepted)], int(verdict.next)]
    assert text == own[: len(text)]


def test_rules_that_draw_are_the_greedy_one_at_temperature_0():
    from app.decoding.verifiers import make_verifier

    for name in ("exact", "block", "coupled", "sample-match"):
        assert make_verifier(name, Sampling()).name == "greedy"
        assert make_verifier(name, Sampling(temperature=0.5)).name == name
