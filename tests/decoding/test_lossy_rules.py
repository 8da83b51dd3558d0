"""Each lossy rule follows its own formula, written down here a second time, over every branch."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from app.decoding.contracts import Draft, Draws, TargetRows
from app.decoding.verifiers import make_verifier
from app.decoding.verifiers.ensemble import Ensemble
from app.decoding.verifiers.fly import Fly
from app.decoding.verifiers.lenience import Lenience
from app.decoding.verifiers.synthetic import Synthetic
from app.decoding.verifiers.typical import Typical
from app.models.block import Block
from app.run.problems import Problem
from app.run.rules import RULES, rates_of
from app.run.settings import Sampling
from app.theory.small_rules import Rule, law_of_round, likeliest
from oracles import GAMMA, VOCABULARY, law_of_rounds, random_table, rows_with
from rule_formulas import TOKEN_BY_TOKEN, left_over

KINDS = ("sampled", "argmax", "point mass")


SAMPLING = Sampling(temperature=1.0)


def verifier_of(name: str):
    """The rule with the options that its formula has."""
    return make_verifier(name, SAMPLING, TOKEN_BY_TOKEN[name][0])


def test_every_lossy_rule_has_its_formula():
    lossy = {name for name, rule in RULES.items() if not rule.lossless}
    assert lossy == {*TOKEN_BY_TOKEN, "fly"}


def numbers(table):
    return {prefix: law.numpy() for prefix, law in table.items()}


def laws(verifier, seed: int, kind: str):
    """The law of three tokens by the verifier, and the tables that it came from."""
    target, other = random_table(seed), random_table(seed + 1000)
    certain = likeliest(numbers(other))
    drawn = other if kind == "sampled" else {k: torch.tensor(v) for k, v in certain.items()}
    if kind == "point mass":
        found = law_of_rounds(verifier, target, lambda kept: int(certain[tuple(kept)].argmax()))
    else:
        found = law_of_rounds(verifier, target, drawn)
    law = np.zeros((VOCABULARY,) * (GAMMA + 1))
    for text, chance in found.items():
        law[text] = chance
    return law, numbers(target), numbers(drawn)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TOKEN_BY_TOKEN)
@pytest.mark.parametrize("seed", range(3))
def test_a_rule_follows_its_formula(name, kind, seed):
    _, formula = TOKEN_BY_TOKEN[name]
    found, target, drawn = laws(verifier_of(name), seed, kind)
    expected = law_of_round(formula, target, drawn, draft_length=GAMMA)
    assert np.abs(found - expected).sum() / 2 < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_an_ensembles_first_token_follows_the_mixture(kind):
    found, target, drawn = laws(Ensemble(0.7), 5, kind)
    assert found.sum(axis=(1, 2)) == pytest.approx(0.7 * target[()] + 0.3 * drawn[()])


@pytest.mark.parametrize("seed", range(3))
def test_with_lenience_no_token_comes_oftener_than_allowed(seed):
    found, target, _ = laws(Lenience(0.4), seed, "sampled")
    assert (found.sum(axis=(1, 2)) <= target[()] / 0.4 + 1e-12).all()


def test_published_acceptance_of_lenience_is_the_overlap_with_a_raised_target():
    # Leviathan et al. 2023, A.5: the chance to keep a guess is Σ min(p/l, q).
    p, q = random_table(3)[()], random_table(4)[()]
    rows = rows_with(p.expand(2, -1))
    alpha = sum(
        float(q[x]) * float(_verdict(Lenience(0.3), [x], rows, q[None]).accept_probability)
        for x in range(VOCABULARY)
    )
    assert alpha == pytest.approx(float(torch.minimum(p / 0.3, q).sum()))


@pytest.mark.parametrize("name", ["lenience", "ensemble"])
def test_at_its_end_a_rule_is_the_exact_one(name):
    exact = Rule("", lambda p, q, x: min(1.0, p[x] / q[x]), left_over)
    verifier = Lenience(1.0) if name == "lenience" else Ensemble(1.0)
    found, target, drawn = laws(verifier, 7, "sampled")
    assert found == pytest.approx(law_of_round(exact, target, drawn, draft_length=GAMMA))


def fly_law(target, drawn, window: int, followers: int, entropy: float):
    """FLy by its words: the strict decisions, then those that are taken back, then the prefix."""
    law = np.zeros((VOCABULARY,) * (GAMMA + 1))
    for guesses in itertools.product(range(VOCABULARY), repeat=GAMMA):
        reached = math.prod(drawn[guesses[:i]][guesses[i]] for i in range(GAMMA))
        if not reached:
            continue
        rows = [(target[guesses[:i]], drawn[guesses[:i]], guesses[i]) for i in range(GAMMA)]
        strict = [min(1.0, p[x] / q[x]) for p, q, x in rows]
        for native in itertools.product((True, False), repeat=GAMMA):
            chance = reached * math.prod(
                s if passes else 1 - s for s, passes in zip(strict, native, strict=True)
            )
            kept = list(native)
            for i, (p, _, x) in enumerate(rows):
                best = sorted(p)[-3:]
                unsure = -sum(b * math.log(b) for b in best if b) >= entropy and p[x] > 0
                ahead = native[i + 1 : i + 1 + followers]
                if not native[i] and unsure and i + window < GAMMA and all(ahead):
                    kept[i] = True
            n = kept.index(False) if False in kept else GAMMA
            p = target[guesses[:n]]
            own = left_over(p, drawn[guesses[:n]], 0) if n < GAMMA else p
            for rest in itertools.product(range(VOCABULARY), repeat=GAMMA + 1 - n):
                text, tail = guesses[:n] + rest, own[rest[0]]
                for place in range(n + 1, GAMMA + 1):
                    tail *= target[text[:place]][text[place]]
                law[text] += chance * tail
    return law


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("window", "followers"), [(1, 1), (1, 0), (2, 1)])
@pytest.mark.parametrize("entropy", [0.0, 0.7, 2.0])
def test_fly_follows_its_words(kind, window, followers, entropy):
    rule = Fly(window=window, followers=followers, entropy=entropy)
    found, target, drawn = laws(rule, 2, kind)
    expected = fly_law(target, drawn, window, followers, entropy)
    assert np.abs(found - expected).sum() / 2 < 1e-12


@pytest.mark.parametrize(
    ("agreeing", "behind", "vllm", "paper"),
    [(6, 0, 7, 7), (5, 1, 0, 6), (5, 0, 0, 0), (4, 9, 0, 0), (8, 0, 9, 9)],
)
def test_both_readings_of_flys_window(agreeing, behind, vllm, paper):
    # A first guess that is wrong, so many that agree, then a wrong one each. A window of six wants
    # six behind the wrong guess in vLLM; five in the paper's code, and a place more in the draft.
    right = [3] * agreeing
    guesses = [1, *right, *([2] * behind)]
    rows = TargetRows(_unsure(len(guesses) + 1), Sampling())
    for reading, expected in (("vllm", vllm), ("paper", paper)):
        options = {"window": 6, "reading": reading}
        verifier = make_verifier("fly", Sampling(), options)
        verdict = _verdict(verifier, guesses, rows, None)
        assert int(verdict.accepted) == expected
        assert int(verdict.next) == 3


def test_fly_left_open_takes_back_what_drafts_of_the_runs_length_have_room_for():
    # A draft of four has room for three guesses that agree behind a wrong one; of five for four.
    rows = TargetRows(_unsure(5), Sampling())
    for draft_length, expected in ((4, 4), (5, 0)):
        verifier = make_verifier("fly", Sampling(), draft_length=draft_length)
        assert int(_verdict(verifier, [1, 3, 3, 3], rows, None).accepted) == expected


def _unsure(rows: int) -> torch.Tensor:
    """Rows whose likeliest token is 3, and not by much."""
    return torch.tensor([0.5, 0.6, 0.4, 1.0]).expand(rows, -1)


def test_a_sure_target_takes_nothing_back():
    logits = torch.tensor([[0.0, 0.0, 0.0, 9.0]]).expand(9, -1)
    fly = make_verifier("fly", Sampling(), {"window": 2})
    verdict = _verdict(fly, [1] + [3] * 7, TargetRows(logits, Sampling()), None)
    assert int(verdict.accepted) == 0


@pytest.mark.parametrize(
    ("rule", "options", "kept"),
    [
        # p of the guesses is .4, .3, .2; the likeliest has .4.
        ("lenience", {"lenience": 0.7}, 2),
        ("lenience", {"lenience": 1.0}, 1),
        # The mixture is w·p, and 1 - w more for the guess: .3·w + 1 - w against .4·w.
        ("ensemble", {"weight": 0.9}, 2),
        ("ensemble", {"weight": 0.83}, 3),
        ("ensemble", {"weight": 1.0}, 1),
    ],
)
def test_rules_at_temperature_0(rule, options, kept):
    logits = torch.tensor([0.1, 0.2, 0.3, 0.4]).log().expand(4, -1)
    verifier = make_verifier(rule, Sampling(), options)
    verdict = _verdict(verifier, [3, 2, 1], TargetRows(logits, Sampling()), None)
    assert int(verdict.accepted) == kept
    assert int(verdict.next) == 3
    assert verdict.lenient.tolist()[:kept] == [False, True, True][:kept]


def test_typical_acceptance_sees_the_temperature_but_no_cut():
    # Top-k 1 leaves one token of the law; the rule still finds the second likely enough.
    sampling = Sampling(temperature=2.0, top_k=1)
    logits = torch.tensor([2.0, 1.6, 0.0]).expand(2, -1)
    p = torch.softmax(logits[0] / 2, -1).tolist()
    entropy = -sum(x * math.log(x + 1e-5) for x in p)
    assert p[1] > min(0.9, 0.8 * math.exp(-entropy)) > p[2]
    for guess, kept in ((1, 1), (2, 0)):
        verdict = _verdict(Typical(0.9, 0.8), [guess], TargetRows(logits, sampling), None)
        assert (int(verdict.accepted), int(verdict.next)) == (kept, 0)


def _verdict(verifier, guesses, rows, laws_, draw=0.5):
    draws = Draws(torch.full((len(guesses),), draw).double(), torch.tensor([0.5]).double())
    return verifier.verify(Draft(Block(list(guesses)), laws_), rows, draws)


@pytest.mark.parametrize("name", ["lenience", "ensemble", "typical", "fly", "synthetic"])
@pytest.mark.parametrize("kind", ["sampled", "point mass"])
def test_what_is_kept_by_leniency_is_its_excess_over_the_strict_rule(name, kind):
    # Over all draws of one guess: max(0, chance of the rule - min(1, p/q)), whatever the guess.
    fly = Fly(window=1, followers=0, entropy=0.2)
    verifier = fly if name == "fly" else verifier_of(name)
    p, q = random_table(8)[()], random_table(9)[()]
    laws_ = q.expand(2, -1) if kind == "sampled" else None
    grid = [(i + 0.5) / 400 for i in range(400)]
    for guess in range(VOCABULARY):
        strict = min(1.0, float(p[guess] / (q[guess] if kind == "sampled" else 1.0)))
        found = [
            _verdict(verifier, [guess, 0], rows_with(p.expand(3, -1)), laws_, draw=u) for u in grid
        ]
        chance = float(found[0].accept_probability[0])
        share = sum(bool(one.lenient[0]) for one in found) / len(grid)
        assert float(found[0].strict_probability[0]) == pytest.approx(strict)
        assert share == pytest.approx(max(0.0, chance - strict), abs=1 / 200)


def test_flys_chance_counts_the_agreement_behind_the_guess():
    p, q = random_table(8)[()], random_table(9)[()]
    verdict = _verdict(
        Fly(window=2, followers=2, entropy=0.0), [0, 1, 2], rows_with(p.expand(4, -1)),
        q.expand(3, -1),
    )  # fmt: skip
    s = [min(1.0, float(p[x] / q[x])) for x in range(3)]
    expected = [s[0] + (1 - s[0]) * s[1] * s[2], s[1], s[2]]
    assert verdict.accept_probability.tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("written", "length", "rates"),
    [
        ("0.9, 0.5,0.5", 2.0, [0.9, 0.5, 0.5]),
        ("", 3.4, [1.0, 1.0, 0.4, 0.0]),
        ("", 1.0, [0.0, 0.0]),
        (" ", 1.25, [0.25, 0.0]),
    ],
)
def test_synthetic_rates(written, length, rates):
    assert rates_of(written, length) == pytest.approx(rates)


@pytest.mark.parametrize("written", ["0.5, 0.6", "1.1", "-0.1", "a half", "0.5,", "nan"])
def test_rates_that_are_none_are_refused(written):
    with pytest.raises(Problem, match="no acceptance rates"):
        rates_of(written, 2.0)


def test_synthetic_chances_are_conditional_and_end_with_the_rates():
    rows = rows_with(random_table(1)[()].expand(5, -1))
    verdict = _verdict(Synthetic([0.8, 0.4, 0.0]), [0, 1, 2, 3], rows, None)
    assert verdict.accept_probability.tolist() == pytest.approx([0.8, 0.5, 0.0, 0.0])


def test_every_lossy_rule_is_made_and_checked_by_its_table():
    for rule in RULES.values():
        sampling = Sampling(temperature=0.0 if rule.name == "greedy" else 1.0)
        assert make_verifier(rule.name, sampling).name == rule.name
    with pytest.raises(Problem, match=r"Lenience l is 0\.0; it has to be a number from 0\.01 to 1"):
        make_verifier("lenience", Sampling(temperature=1.0), {"lenience": 0.0})
    with pytest.raises(Problem, match="Window counts is 'mine'; it has to be one of: vllm, paper"):
        make_verifier("fly", Sampling(), {"reading": "mine"})
    with pytest.raises(Problem, match="Rule 'exact' has no option 'lenience'"):
        make_verifier("exact", Sampling(), {"lenience": 0.5})
