"""The rules keep the target's law: every branch of a small world is summed."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from app.decoding.contracts import Draft, Draws, TargetRows
from app.decoding.sampling import pick
from app.decoding.verifiers import make_verifier
from app.decoding.verifiers.exact import Exact, residual
from app.decoding.verifiers.greedy import Greedy
from app.models.block import Block
from app.run.problems import Problem
from app.run.settings import Sampling
from oracles import distance, rows_with


class ResidualIsP(Exact):
    """Draws from p after a rejection."""

    def verify(self, draft, rows, draws):
        verdict = super().verify(draft, rows, draws)
        return with_law(verdict, rows.law[verdict.accepted])


class ResidualFilteredAgain(Exact):
    """Keeps only the two likeliest tokens of the residual."""

    def verify(self, draft, rows, draws):
        verdict = super().verify(draft, rows, draws)
        if int(verdict.accepted) == len(draft):
            return verdict
        law = verdict.next_law.clone()
        law[law.argsort()[:2]] = 0.0
        return with_law(verdict, law / law.sum())


class BonusFromWrongRow(Exact):
    """Draws the bonus from the row before the last."""

    def verify(self, draft, rows, draws):
        verdict = super().verify(draft, rows, draws)
        whole = int(verdict.accepted) == len(draft)
        return with_law(verdict, rows.law[-2]) if whole else verdict


class PointMassTakenAtFaceValue(Exact):
    """Trap 2: divides by a law that a certain guess was not drawn from."""

    def verify(self, draft, rows, draws):
        told = Draft(draft.block, torch.full((len(draft), rows.law.shape[1]), 0.25).double())
        return super().verify(told, rows, draws)


def with_law(verdict, law):
    import dataclasses

    return dataclasses.replace(verdict, next_law=law, next=pick(law, 0.5))


def raw_law(table):
    """The law before top-k: what was drawn from was warped, what is told is not."""
    return {prefix: (law + 0.15) / (law + 0.15).sum() for prefix, law in table.items()}


def other_temperature(table):
    return {prefix: law**0.5 / (law**0.5).sum() for prefix, law in table.items()}


@pytest.mark.parametrize(
    ("verifier", "kind", "fault"),
    [
        (ResidualIsP(), "sampled", None),
        (ResidualFilteredAgain(), "sampled", None),
        (BonusFromWrongRow(), "sampled", None),
        (PointMassTakenAtFaceValue(), "point mass", None),
        (Exact(), "sampled", raw_law),
        (Exact(), "sampled", other_temperature),
    ],
    ids=["p on rejection", "residual filtered", "bonus row", "point mass", "raw q", "temperature"],
)
def test_planted_biases_are_seen(verifier, kind, fault):
    assert max(distance(verifier, seed, kind=kind, fault=fault) for seed in range(3)) > 1e-3


def test_two_outcomes_by_hand():
    # Target .60/.40, draft .80/.20: A is kept with .75, B always; what is left over is all B.
    p = torch.tensor([[0.6, 0.4], [0.6, 0.4]], dtype=torch.float64)
    q = torch.tensor([[0.8, 0.2]], dtype=torch.float64)
    for guess, expected in ((0, 0.75), (1, 1.0)):
        draft = Draft(Block([guess]), q)
        draws = Draws(torch.tensor([0.99], dtype=torch.float64), torch.tensor([0.5]))
        verdict = Exact().verify(draft, rows_with(p), draws)
        assert float(verdict.accept_probability[0]) == pytest.approx(expected, abs=1e-15)
    law = residual(p[0], Draft(Block([0]), q), torch.tensor(0))
    assert law.tolist() == pytest.approx([0.0, 1.0])


def test_equal_laws_never_reject():
    # p == q: A09 and A07; the largest draw there is must still accept.
    p = torch.tensor([[0.5, 0.5], [0.5, 0.5]])
    draft = Draft(Block([1]), p[:1])
    draws = Draws(torch.tensor([1.0 - 2.0**-53], dtype=torch.float64), torch.tensor([0.5]))
    assert int(Exact().verify(draft, rows_with(p), draws).accepted) == 1


def test_an_impossible_guess_is_never_kept():
    p = torch.tensor([[0.0, 1.0], [0.5, 0.5]])
    draft = Draft(Block([0]), None)
    draws = Draws(torch.tensor([2.0**-60], dtype=torch.float64), torch.tensor([0.5]))
    verdict = Exact().verify(draft, rows_with(p), draws)
    assert int(verdict.accepted) == 0
    assert int(verdict.next) == 1


def test_nothing_left_over_falls_back_to_p():
    # Equal but for the last bit, and a rejection forced: the residual would be 0/0.
    p = torch.tensor([0.25, 0.75])
    q = torch.tensor([[0.25, torch.nextafter(p[1], torch.tensor(1.0))]])
    assert residual(p, Draft(Block([1]), q), torch.tensor(0)).tolist() == p.tolist()


@given(
    st.lists(st.integers(0, 5), max_size=6),
    st.lists(st.integers(0, 5), min_size=7, max_size=7),
)
def test_greedy_keeps_the_longest_agreeing_prefix(guesses, choices):
    logits = torch.nn.functional.one_hot(torch.tensor(choices[: len(guesses) + 1]), 6).float()
    rows = TargetRows(logits, Sampling())
    empty = torch.empty(0)
    verdict = Greedy().verify(Draft(Block(guesses)), rows, Draws(empty, empty))
    agreeing = 0
    while agreeing < len(guesses) and guesses[agreeing] == choices[agreeing]:
        agreeing += 1
    assert int(verdict.accepted) == agreeing
    assert int(verdict.next) == choices[agreeing]


def test_greedy_takes_the_lowest_id_of_equals():
    rows = TargetRows(torch.tensor([[1.0, 3.0, 3.0]]), Sampling())
    verdict = Greedy().verify(Draft(Block()), rows, Draws(torch.empty(0), torch.empty(0)))
    assert int(verdict.next) == 1


def test_rules_by_name():
    assert make_verifier("exact", Sampling(temperature=0.7)).name == "exact"
    assert make_verifier("exact", Sampling()).name == "greedy"
    with pytest.raises(Problem, match=r"temperature is 0\.7"):
        make_verifier("greedy", Sampling(temperature=0.7))
    with pytest.raises(Problem, match="Choose one of: exact, block"):
        make_verifier("vibes", Sampling())
