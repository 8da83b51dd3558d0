"""Rules on guesses that branch, every branch summed: the text follows the target's law."""

import itertools

import pytest
import torch

from app.decoding.contracts import Draft, Draws
from app.decoding.decision import bring_home
from app.decoding.loop import draws_on
from app.decoding.sampling import pick
from app.decoding.shared_noise import SharedNoise
from app.decoding.verifiers import branches, make_verifier
from app.decoding.verifiers.coupled import Coupled
from app.decoding.verifiers.exact import Exact
from app.decoding.verifiers.greedy import Greedy
from app.decoding.verifiers.sample_match import SampleMatch
from app.models.block import Block
from app.run.settings import Sampling
from oracles import GAMMA, LENGTH, VOCABULARY, law_of_text, random_table, rows_with, total_variation

TREES = {
    "a chain": ([2, 1], [-1, 0]),
    "two siblings": ([2, 1], [-1, -1]),
    "a shared start": ([2, 0, 3, 1], [-1, 0, 0, 0]),
    "two branches": ([2, 1, 0, 3, 3], [-1, -1, 0, 0, 1]),
    "a child as its parent": ([2, 2, 0, 0], [-1, 0, -1, 2]),
    "every token": ([3, 1, 0, 2], [-1, -1, -1, -1]),
    "twins": ([1, 1, 2, 3], [-1, -1, 0, 1]),
    "breadth first": ([0, 1, 2, 2, 1, 3], [-1, -1, 0, 1, 0, 1]),
}
"""Ids and parents: no text is deeper than the table of laws."""


def draft_of(ids, parents) -> Draft:
    block = Block()
    block.branch(torch.tensor(ids), torch.tensor(parents), levels=GAMMA)
    return Draft(block, source="tree")


def path(ids, parents, place) -> tuple[int, ...]:
    return () if place < 0 else (*path(ids, parents, parents[place]), ids[place])


def rows_of(table, ids, parents):
    return rows_with(torch.stack([table[path(ids, parents, at)] for at in range(-1, len(ids))]))


def completed(law, table, text, weight) -> None:
    """Adds what a round's text comes to, once the target has gone on behind it alone."""
    for rest in itertools.product(range(VOCABULARY), repeat=LENGTH - len(text)):
        whole, chance = (*text, *rest), weight
        for place in range(len(text), LENGTH):
            chance *= float(table[whole[:place]][whole[place]])
        law[whole] += chance


def kept_text(ids, verdict) -> tuple[int, ...]:
    return tuple(token for token, kept in zip(ids, verdict.kept.tolist(), strict=True) if kept)


def law_of_exact(table, ids, parents) -> dict:
    """The law of a round, over all sides on which the accept draws may fall."""
    draft, rows = draft_of(ids, parents), rows_of(table, ids, parents)
    half = torch.full((len(ids),), 0.5, dtype=torch.float64)
    chances = Exact().verify(draft, rows, Draws(half, half[:1])).accept_probability.tolist()
    law = dict.fromkeys(law_of_text(table), 0.0)
    for sides in itertools.product((True, False), repeat=len(ids)):
        weight, draws = 1.0, []
        for keep, chance in zip(sides, chances, strict=True):
            weight *= chance if keep else 1.0 - chance
            draws.append(chance / 2 if keep else (1.0 + chance) / 2)
        if weight:
            accept = torch.tensor(draws, dtype=torch.float64)
            verdict = Exact().verify(draft, rows, Draws(accept, half[:1]))
            for token, share in enumerate(verdict.next_law.tolist()):
                if share:
                    completed(law, table, (*kept_text(ids, verdict), token), weight * share)
    return law


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_exact_rule_keeps_the_targets_law(tree, zeros, seed):
    table = random_table(seed, zeros=zeros)
    assert total_variation(law_of_exact(table, *TREES[tree]), law_of_text(table)) < 1e-12


@pytest.mark.parametrize("fault", ["keeps what was spent", "forgets the children"])
def test_a_fault_in_the_exact_rule_would_be_seen(monkeypatch, fault):
    from app.decoding.verifiers import exact

    def unspent(laws, draft, tree):
        return laws[tree.parents + 1, draft.block.tensor()]

    if fault == "keeps what was spent":
        monkeypatch.setattr(exact, "branch_chances", unspent)
    else:
        monkeypatch.setattr(exact, "left_over", lambda p, draft, tree, row: p)
    table = random_table(1)
    law = law_of_exact(table, *TREES["two branches"])
    assert total_variation(law, law_of_text(table)) > 1e-3


@pytest.mark.parametrize("tree", [name for name, (ids, _) in TREES.items() if len(ids) < 6])
@pytest.mark.parametrize("seed", range(2))
def test_sample_and_match_keeps_the_targets_law(tree, seed):
    ids, parents = TREES[tree]
    table = random_table(seed)
    draft, rows = draft_of(ids, parents), rows_of(table, ids, parents)
    law = dict.fromkeys(law_of_text(table), 0.0)
    ends = rows.law.cumsum(-1)
    for own in itertools.product(range(VOCABULARY), repeat=len(ids) + 1):
        index = torch.tensor(own)[:, None]
        share = rows.law.gather(1, index)
        values = (ends.gather(1, index) - share / 2)[:, 0]
        assert torch.equal(pick(rows.law, values[:, None]), index[:, 0])
        verdict = SampleMatch().verify(draft, rows, Draws(values[:-1], values[-1:]))
        text = (*kept_text(ids, verdict), int(verdict.next))
        completed(law, table, text, float(share.prod()))
    assert total_variation(law, law_of_text(table)) < 1e-12


@pytest.mark.parametrize("tree", TREES)
def test_the_coupled_rule_keeps_what_the_target_draws_at_each_place(tree):
    ids, parents = TREES[tree]
    for seed in range(40):
        table = random_table(seed)
        noise = SharedNoise(seed, 9)
        own: tuple[int, ...] = ()
        for place in range(LENGTH):
            times = noise.times(place + 1, VOCABULARY, device=torch.device("cpu"))[place]
            own = (*own, int((table[own] / times).argmax()))
        half = torch.full((len(ids),), 0.5)
        rows = rows_of(table, ids, parents)
        verdict = Coupled().verify(draft_of(ids, parents), rows, Draws(half, half[:1], noise))
        text = (*kept_text(ids, verdict), int(verdict.next))
        assert text == own[: len(text)]
        longest = max(
            (
                len(way)
                for way in (path(ids, parents, at) for at in range(-1, len(ids)))
                if way == own[: len(way)]
            ),
        )
        assert len(text) == longest + 1 or tree == "twins"


@pytest.mark.parametrize("tree", TREES)
def test_the_greedy_rule_keeps_the_longest_branch_of_likeliest_tokens(tree):
    ids, parents = TREES[tree]
    for seed in range(40):
        table = random_table(seed)
        half = torch.full((len(ids),), 0.5)
        draft, rows = draft_of(ids, parents), rows_of(table, ids, parents)
        verdict = Greedy().verify(draft, rows, Draws(half, half[:1]))
        best: tuple[int, ...] = ()
        for _ in range(LENGTH):
            best = (*best, int(table[best].argmax()))
        ways = [path(ids, parents, at) for at in range(-1, len(ids))]
        longest = max((way for way in ways if way == best[: len(way)]), key=len)
        if tree != "twins":  # the first of twins is followed
            assert kept_text(ids, verdict) == longest
        assert (*kept_text(ids, verdict), int(verdict.next)) == best[: int(verdict.accepted) + 1]


@pytest.mark.parametrize("name", ["exact", "sample-match", "coupled"])
def test_a_tree_without_branches_is_decided_as_the_chain_that_it_is(name):
    rule = make_verifier(name, Sampling(temperature=1.0))
    for seed in range(60):
        table = random_table(seed)
        ids = [seed % 4, seed // 4 % 4]
        rows = rows_of(table, ids, [-1, 0])
        values = torch.rand(GAMMA + 1, generator=torch.Generator().manual_seed(seed)).tolist()
        draws = draws_on(values, torch.device("cpu"), SharedNoise(seed, 3))
        tree = bring_home(
            draft_of(ids, [-1, 0]),
            rows,
            rule.verify(draft_of(ids, [-1, 0]), rows, draws),
            detail="light",
        )
        block = Draft(Block(ids))
        chain = bring_home(block, rows, rule.verify(block, rows, draws), detail="light")
        assert (tree.guesses, tree.accepted, tree.next) == (ids, chain.accepted, chain.next)
        assert tree.rejected == chain.rejected
        for number, values in chain.numbers.items():
            assert tree.numbers[number] == pytest.approx(values), number


def test_only_those_whose_turn_came_are_tested():
    # By hand: of the text's children the second passes, and neither of its own.
    draft = draft_of([2, 1, 0, 3, 3, 0], [-1, -1, -1, 0, 1, 1])
    passes = torch.tensor([False, True, True, True, False, False])
    walk = branches.Walk(draft.block.tree, passes)
    assert walk.kept.tolist() == [False, True, False, False, False, False]
    assert walk.tested.tolist() == [True, True, False, False, True, True]
    assert int(walk.row) == 2
    assert int(walk.accepted) == 1
