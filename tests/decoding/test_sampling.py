"""Warping against transformers' own processors, and draws against the law they stand for."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from app.decoding.randomness import draw
from app.decoding.sampling import Penalties, pick, warp
from app.models.block import Block
from app.run.problems import Problem
from app.run.settings import Sampling
from tests.benchmarks.verification import by_halving, by_sorting


@given(
    seed=st.integers(0, 10_000),
    temperature=st.sampled_from([1e-4, 0.3, 0.7, 1.0, 2.0]),
    top_k=st.sampled_from([0, 1, 3, 50]),
    top_p=st.sampled_from([1.0, 0.95, 0.5, 0.01]),
    min_p=st.sampled_from([0.0, 0.1, 0.9]),
)
@settings(deadline=None, max_examples=60)
def test_warping_equals_transformers(seed, temperature, top_k, top_p, min_p):
    logits = torch.randn(3, 90, generator=torch.Generator().manual_seed(seed)) * 3
    theirs = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
    if top_k:
        theirs.append(TopKLogitsWarper(top_k))
    if top_p < 1:
        theirs.append(TopPLogitsWarper(top_p))
    if min_p:
        theirs.append(MinPLogitsWarper(min_p))
    expected = torch.softmax(theirs(None, logits.clone()), dim=-1)
    ours = warp(logits, Sampling(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p))
    assert torch.isfinite(ours).all()
    assert torch.allclose(ours, expected, atol=1e-6)


def test_a_wide_nucleus_is_cut_as_a_narrow_one():
    # Wider than the short list: the full sort has to answer, for that row and its neighbour.
    logits = torch.stack([torch.linspace(0, 0.5, 5000), torch.linspace(0, 40, 5000)])
    theirs = TopPLogitsWarper(0.9)(None, logits.clone())
    ours = warp(logits, Sampling(temperature=1.0, top_p=0.9))
    assert torch.allclose(ours, torch.softmax(theirs, dim=-1), atol=1e-6)


@pytest.mark.parametrize("top_p", [0.5, 0.7, 0.9])
def test_a_nucleus_that_ends_among_equals_does_not_depend_on_other_rows(top_p):
    # Logits in bf16 are full of equals; the wide row makes the CPU sort all of both rows.
    places = torch.randperm(5000, generator=torch.Generator().manual_seed(0))
    row = torch.full((5000,), -5.0)
    row[places[:10]], row[places[10:300]] = 5.0, 3.0
    wide = torch.linspace(0, 0.5, 5000)
    sampling = Sampling(temperature=1.0, top_p=top_p)
    alone, beside = warp(row[None], sampling)[0], warp(torch.stack([row, wide]), sampling)[0]
    assert torch.equal(alone, beside)
    assert int((alone > 0).sum()) == 300


def tied_rows(width=300):
    """Rows that a nucleus is easily cut wrongly of: equals, certainties, and what cannot be."""
    generator = torch.Generator().manual_seed(4)
    flat, certain = torch.zeros(width), torch.full((width,), -torch.inf)
    certain[7] = 3.0
    halves = torch.full((width,), -torch.inf)
    halves[[3, 90, 91, 299]] = 1.0  # a quarter each, exactly
    steps = torch.arange(width).div(25, rounding_mode="floor").float()
    rough = (4 * torch.randn(width, generator=generator)).bfloat16().float()
    cut = torch.where(torch.rand(width, generator=generator) < 0.5, -torch.inf, rough)
    return torch.stack([flat, certain, halves, steps.flip(0), rough, cut])


@pytest.mark.parametrize("top_p", [0.001, 0.25, 0.5, 0.75, 0.9, 0.999999])
@pytest.mark.parametrize("top_k", [1, 2, 4, 26, 150, 300, 1000])
def test_a_nucleus_within_the_likeliest_k_is_that_of_a_full_sort(top_k, top_p):
    scores = tied_rows()
    least = torch.sort(scores, descending=True).values[:, min(top_k, 300) - 1, None]
    scores = torch.where(scores < least, -torch.inf, scores)
    law = torch.softmax(scores, dim=-1)
    values = torch.sort(law, descending=True).values
    inside = values.cumsum(dim=-1) - values < top_p
    least = torch.where(inside, values, torch.inf).amin(dim=-1, keepdim=True)
    expected = torch.softmax(torch.where(law < least, -torch.inf, scores), dim=-1)
    ours = warp(tied_rows(), Sampling(temperature=1.0, top_k=top_k, top_p=top_p))
    assert torch.equal(ours, expected)


@pytest.mark.parametrize("top_p", [0.001, 0.25, 0.5, 0.75, 0.9, 0.99])
def test_a_nucleus_found_by_halving_is_that_of_a_full_sort(top_p):
    law = torch.softmax(tied_rows(), dim=-1)
    assert torch.equal(law >= by_halving(law, top_p), law >= by_sorting(law, top_p))


def test_penalties_see_the_guesses_before_their_row():
    logits = torch.randn(4, 20, generator=torch.Generator().manual_seed(1))
    text, guesses = [3, 4, 4, 5], [7, 7, 3]
    sampling = Sampling(repetition_penalty=1.3, presence_penalty=0.7)
    ours = Penalties(sampling, 2).apply(logits, text, Block(guesses))
    for row in range(4):
        seen = torch.tensor([text + guesses[:row]])
        expected = RepetitionPenaltyLogitsProcessor(1.3)(seen, logits[row : row + 1].clone())[0]
        for token in {*text[2:], *guesses[:row]}:
            expected[token] -= 0.7
        assert torch.allclose(ours[row], expected)


def test_penalties_forget_thrown_guesses_and_count_new_text_once():
    logits = torch.ones(1, 8)
    penalties = Penalties(Sampling(presence_penalty=1.0), 1)
    penalties.apply(logits.repeat(3, 1), [0, 1], Block([5, 6]))
    fresh = Penalties(Sampling(presence_penalty=1.0), 1)
    text = [0, 1, 2, 2]
    assert torch.equal(penalties.apply(logits, text, None), fresh.apply(logits, text, None))


def test_a_row_behind_a_chain_of_guesses_sees_them_all():
    logits = torch.zeros(1, 8)
    row = Penalties(Sampling(presence_penalty=1.0), 0).apply(logits, [1], Block([2, 3]))
    assert row[0].tolist() == [0, -1, -1, -1, 0, 0, 0, 0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.0001, 0.9999))
def test_pick_inverts_the_distribution(weights, u):
    if sum(weights) <= 1e-3:
        weights[0] = 1.0
    law = torch.tensor(weights, dtype=torch.float64) / sum(weights)
    token = int(pick(law, u))
    assert law[token] > 0
    assert float(law[:token].sum()) <= u + 1e-9
    assert float(law[: token + 1].sum()) >= u - 1e-9


def test_pick_never_takes_what_has_no_probability():
    law = torch.tensor([0.0, 0.5, 0.5, 0.0])
    assert int(pick(law, 2.0**-53)) == 1
    assert int(pick(law, 1.0 - 2.0**-53)) == 2


def test_the_largest_and_least_draws_pick_what_is_possible():
    laws = torch.softmax(5 * torch.randn(500, 40, generator=torch.Generator().manual_seed(2)), -1)
    laws[:, :5] = laws[:, 30:] = 0.0
    assert pick(laws, 1.0 - 2.0**-53).tolist() == [29] * 500
    assert pick(laws, 2.0**-53).tolist() == [5] * 500
    assert pick(laws[0] * torch.nan, 0.5) < 40


def test_draws_depend_on_their_place_alone():
    once = draw(7, "accept", 3, 1)
    draw(7, "draft", 0, 0)
    assert draw(7, "accept", 3, 1) == once
    places = [
        (s, st_, r, k)
        for s in (0, 1)
        for st_ in ("draft", "accept", "next", "first")
        for r in range(3)
        for k in range(3)
    ]
    assert len({draw(*place) for place in places}) == len(places)


def test_draws_are_uniform_and_independent_streams():
    n = 20_000
    accept = torch.tensor([draw(1, "accept", i, 0) for i in range(n)], dtype=torch.float64)
    draft = torch.tensor([draw(1, "draft", i, 0) for i in range(n)], dtype=torch.float64)
    assert float(accept.min()) > 0
    assert float(accept.max()) < 1
    counts = torch.histc(accept, bins=20, min=0, max=1)
    chi_square = float(((counts - n / 20) ** 2 / (n / 20)).sum())
    assert chi_square < 52  # 19 degrees of freedom, 1e-4
    correlation = float(torch.corrcoef(torch.stack([accept, draft]))[0, 1])
    assert abs(correlation) < 4 / math.sqrt(n)


@pytest.mark.parametrize("temperature", [math.nan, -1.0, math.inf])
def test_temperatures_that_mean_nothing_are_refused(temperature):
    with pytest.raises(Problem, match="temperature"):
        Sampling(temperature=temperature).check()


@pytest.mark.parametrize(
    ("temperature", "greedy"), [(0, True), (1e-8, True), (1e-6, True), (1e-4, False)]
)
def test_one_cut_off_for_greedy(temperature, greedy):
    Sampling(temperature=temperature).check()
    assert Sampling(temperature=temperature).greedy is greedy
