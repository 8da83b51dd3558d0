"""A draft may draw by settings of its own: its law is the one it drew by, and the text's stays."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from drafts import TableDraft, all_drafts, own_law, warp_of

from app.decoding.proposers import Surroundings, make_proposer
from app.decoding.proposers.drawing import drawn_by
from app.decoding.verifiers.block import BlockVerification
from app.decoding.verifiers.exact import Exact
from app.models.pair import DraftWidths
from app.run.methods import METHODS
from app.run.problems import Problem
from app.run.settings import Sampling
from oracles import GAMMA, VOCABULARY, law_of_drafts, law_of_text, random_table, total_variation
from toys import ScriptedLM, make_lane, run, sessions, tiny_llama

CPU = torch.device("cpu")
DRAWING = ("draft-model", "cascade", "early-exit", "head", "tli", "slem", "mtp")
RUN = Sampling(temperature=0.6, top_k=2, seed=4, presence_penalty=0.3)
WAYS = {
    "target": {},
    "own": {"draft_sampling": "own", "draft_temperature": 1.6},
    "argmax": {"draft_sampling": "argmax"},
}


def around(sampling=RUN, width=VOCABULARY, prompt=1) -> Surroundings:
    return Surroundings(
        sampling=sampling,
        end_ids=(),
        prompt_length=prompt,
        device=CPU,
        draft_device=CPU,
        widths=DraftWidths(width, width, width),
        draft_context=4096,
    )


@pytest.mark.parametrize("method", DRAWING)
def test_every_method_that_draws_offers_the_same_choice(method):
    filled = METHODS[method].filled({})
    assert drawn_by(RUN, filled) is RUN
    own = drawn_by(RUN, {**filled, "draft_sampling": "own", "draft_temperature": 1.6})
    assert own == Sampling(temperature=1.6, seed=4, presence_penalty=0.3)
    argmax = drawn_by(RUN, {**filled, "draft_sampling": "argmax"})
    assert argmax.greedy
    assert argmax.presence_penalty == 0.3
    with pytest.raises(Problem, match="one of: target, own, argmax"):
        METHODS[method].filled({"draft_sampling": "coldest"})


@pytest.mark.parametrize("method", ["head", "mtp"])
def test_what_guesses_from_features_draws_by_its_option(method):
    surroundings = replace(around(), head=SimpleNamespace(ids=torch.arange(VOCABULARY)), width=4)
    by = [make_proposer(method, WAYS[way], surroundings) for way in ("target", "argmax")]
    assert [one._sampling.greedy for one in by] == [False, True]
    assert {one.source for one in by} == {method}


def drafts_of(way, seed, monkeypatch, method="draft-model"):
    """Every draft of a table, and the laws by the definition of the way that it draws."""
    table = random_table(seed + 1000)
    for module in ("one_by_one", "cascade"):
        monkeypatch.setattr(f"app.decoding.proposers.{module}.warp", warp_of(table))
    sampling = Sampling(temperature=0.6, top_k=2)
    proposer = make_proposer(method, WAYS[way], around(sampling))
    laws = {prefix: by_definition(way, law) for prefix, law in table.items()}
    text = [1]
    return laws, all_drafts(proposer, TableDraft(table, 1), text, monkeypatch, laws=laws)


def by_definition(way, law):
    """What a guess is drawn from: the target's settings, one temperature, or the likeliest."""
    if way == "own":
        return own_law(law, 1.6)
    kept = law.where(law >= law.sort(descending=True).values[0 if way == "argmax" else 1], 0.0)
    return own_law(kept, 0.6)


@pytest.mark.parametrize("rule", [Exact(), BlockVerification()], ids=["exact", "block"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(3))
def test_the_text_keeps_its_law_whatever_the_draft_draws_by(way, rule, seed, monkeypatch):
    target = random_table(seed)
    laws, drafts = drafts_of(way, seed, monkeypatch)
    drafts = list(drafts)
    assert (drafts[0][2] is None) == (way == "argmax")
    assert total_variation(law_of_drafts(rule, target, drafts), law_of_text(target)) < 1e-12
    # And the drafts come as often as the laws say.
    often = dict.fromkeys(itertools.product(range(VOCABULARY), repeat=GAMMA), 0.0)
    for guesses, weight, _ in drafts:
        often[guesses] += weight
    said = {g: float(laws[()][g[0]] * laws[g[:1]][g[1]]) for g in often}
    assert total_variation(often, said) < 1e-12


@pytest.mark.parametrize("way", ["own", "argmax"])
def test_a_draft_that_declares_the_runs_law_but_draws_by_its_own_is_seen(way, monkeypatch):
    # A06.
    target = random_table(1)
    table = random_table(1001)
    told = {prefix: by_definition("target", law) + 1e-3 for prefix, law in table.items()}
    told = {prefix: law / law.sum() for prefix, law in told.items()}
    wrong = [
        (guesses, weight, torch.stack([told[()], told[guesses[:1]]]))
        for guesses, weight, _ in drafts_of(way, 1, monkeypatch)[1]
    ]
    assert total_variation(law_of_drafts(Exact(), target, wrong), law_of_text(target)) > 1e-2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("penalties", [{}, {"repetition_penalty": 1.3, "presence_penalty": 0.5}])
def test_a_greedy_text_is_the_same_whatever_the_draft_draws_by(way, penalties):
    sampling = Sampling(seed=2, **penalties)
    target, draft = tiny_llama(5), tiny_llama(5, noise=0.05)
    plain = run(make_lane([7, 7], sampling=sampling, max_new_tokens=30), sessions(target))
    for length in range(1, 9):
        proposer = make_proposer("draft-model", WAYS[way], around(sampling, 64, prompt=2))
        lane = make_lane(
            [7, 7], proposer=proposer, sampling=sampling, draft_length=length, max_new_tokens=30
        )
        assert run(lane, sessions(target, draft)).token_ids == plain.token_ids


def test_a_draft_of_its_own_temperature_draws_where_the_text_is_greedy():
    # Its guesses vary with the seed, the text does not.
    target = ScriptedLM(lambda prefix: [0.1, 0.2, 0.3, 0.25])
    found = []
    for seed in range(6):
        sampling = Sampling(seed=seed)
        proposer = make_proposer("draft-model", WAYS["own"], around(sampling))
        lane = make_lane([1], proposer=proposer, sampling=sampling, max_new_tokens=12)
        found.append(run(lane, sessions(target, target)))
    assert len({tuple(one.token_ids) for one in found}) == 1
    guessed = {
        token.id
        for one in found
        for round_ in one.rounds
        for token in (*round_.committed, *round_.thrown)
        if token.source
    }
    assert guessed == {0, 1, 2, 3}
