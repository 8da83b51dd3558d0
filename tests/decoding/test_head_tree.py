"""Trees of a draft head: grown as EAGLE-2 says, and the text is the target's whatever they hold."""

import itertools
import math
import random

import pytest
import torch

from app.decoding.contracts import Read
from app.decoding.drivers import Sessions, run_lane
from app.decoding.loop import decode
from app.decoding.proposers.draft_head import HeadSetup
from app.decoding.proposers.grown_tree import TreeGrowing
from app.decoding.proposers.head_tree import HeadTree
from app.models.block import Block
from app.models.session import Session
from app.run.events import RoundCommitted
from app.run.identities import violations
from app.run.metrics import acceptance_by_position, counts
from app.run.settings import Sampling
from toys import make_lane, run, tiny_head, tiny_llama

WORDS = 5
PENALTIES = {"repetition_penalty": 1.3, "presence_penalty": 0.4}


def confidences(seed: int) -> dict[tuple[int, ...], list[float]]:
    """Log-probabilities of the next of a few words, behind every way of up to four of them."""
    chance = random.Random(seed)
    found = {}
    for size in range(5):
        for way in itertools.product(range(WORDS), repeat=size):
            weights = [chance.random() ** 3 + 1e-3 for _ in range(WORDS)]
            found[way] = [math.log(weight / sum(weights)) for weight in weights]
    return found


def grown(table, *, levels: int, nodes: int, breadth: int, end_ids=()) -> set[tuple[int, ...]]:
    """The ways through a tree that is grown by a table."""
    ids = torch.arange(WORDS)
    tree = TreeGrowing.of(ids, nodes=nodes, breadth=breadth, end_ids=end_ids).begin()
    ways: list[tuple[int, ...]] = []
    for level in range(levels):
        if level:
            tree.extend_beam()
            block = tree.beam
            ways = ways_of(block)
        newest = ways[-tree.width :] if level else [()]
        tree.grow(torch.tensor([table[way] for way in newest]))
    found = tree.best()
    best = Block()
    best.branch(found.ids, found.parents, levels=levels)
    found = ways_of(best)
    assert len(set(found)) == len(found), "a way is there twice"
    assert all(parent < place for place, parent in enumerate(best.parents))
    return set(found)


def ways_of(block) -> list[tuple[int, ...]]:
    ways: list[tuple[int, ...]] = []
    for token, parent in zip(block.ids, block.parents, strict=True):
        ways.append((*(ways[parent] if parent >= 0 else ()), token))
    return ways


def score(table, way) -> float:
    return sum(table[way[:place]][token] for place, token in enumerate(way))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("nodes", [1, 3, 5])
def test_a_tree_of_full_breadth_holds_the_likeliest_ways_of_all(seed, nodes):
    # Every start of a way is at least as likely, so that a beam of so many words cuts none of them.
    table = confidences(seed)
    whole = [w for n in (1, 2, 3) for w in itertools.product(range(WORDS), repeat=n)]
    best = sorted(whole, key=lambda way: -score(table, way))[:nodes]
    assert grown(table, levels=3, nodes=nodes, breadth=WORDS) == set(best)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("levels", "nodes", "breadth"), [(1, 9, 3), (3, 6, 2), (4, 12, 3)])
def test_a_tree_grows_as_the_algorithm_says(seed, levels, nodes, breadth):
    # EAGLE-2 by hand: the best of each level are given their best children; then the best of all.
    table = confidences(seed)
    beam, every = [()], []
    for _ in range(levels):
        level = [
            (*way, token)
            for way in beam
            for token in sorted(range(WORDS), key=lambda t: -table[way][t])[:breadth]
        ]
        every += level
        beam = sorted(level, key=lambda way: -score(table, way))[:breadth]
    best = sorted(every, key=lambda way: -score(table, way))[:nodes]
    assert grown(table, levels=levels, nodes=nodes, breadth=breadth) == set(best)


def test_no_parent_is_left_out_for_a_child_that_scores_as_well():
    certain = [0.0, -math.inf, -math.inf, -math.inf, -math.inf]
    table = dict.fromkeys(confidences(0), certain)
    assert grown(table, levels=4, nodes=3, breadth=1) == {(0,), (0, 0), (0, 0, 0)}


def test_what_stands_behind_an_end_of_text_comes_last():
    certain = [math.log(0.9), math.log(0.04), math.log(0.03), math.log(0.02), math.log(0.01)]
    table = dict.fromkeys(confidences(0), certain)
    found = grown(table, levels=3, nodes=8, breadth=3, end_ids=[0])
    assert not any(0 in way[:-1] for way in found)


@pytest.fixture(scope="module")
def pair():
    target = tiny_llama(4)
    return target, tiny_head(target)


def tree_of(head, target, sampling=Sampling(), *, prompt_length=3, end_ids=(), nodes=9, breadth=3):
    return HeadTree(
        HeadSetup(
            sampling=sampling,
            ids=head.ids,
            width=target.width,
            prompt_length=prompt_length,
            end_ids=end_ids,
        ),
        nodes=nodes,
        breadth=breadth,
    )


def opened(target, head, capacity=200) -> Sessions:
    session = target.open(capacity, features=True)
    return Sessions({"target": session, "head": head.open(session, capacity)})


def decoded(pair, prompt, sampling=Sampling(), *, end_ids=(), **asked):
    target, head = pair
    shape = {name: asked.pop(name) for name in ("nodes", "breadth") if name in asked}
    made = tree_of(head, target, sampling, prompt_length=len(prompt), end_ids=end_ids, **shape)
    lane = make_lane(prompt, proposer=made, sampling=sampling, end_ids=end_ids, **asked)
    found = run(lane, opened(target, head))
    assert violations(found, asked.get("max_new_tokens")) == []
    return found


def plain(pair, prompt, sampling=Sampling(), **asked):
    lane = make_lane(prompt, sampling=sampling, draft_length=0, **asked)
    return run(lane, Sessions({"target": Session(pair[0], 200)}))


@pytest.mark.parametrize("depth", range(1, 9))
@pytest.mark.parametrize("penalties", [{}, PENALTIES])
def test_greedy_text_is_the_baselines(pair, depth, penalties):
    sampling = Sampling(**penalties)
    asked = {"max_new_tokens": 40}
    found = decoded(pair, [3, 9, 27], sampling, draft_length=depth, **asked)
    assert found.token_ids == plain(pair, [3, 9, 27], sampling, **asked).token_ids
    assert counts(found).accepted > 0
    assert max(round_.nodes or 0 for round_ in found.rounds) == min(9, 3 + (depth - 1) * 9)


@pytest.mark.parametrize("seed", range(3))
def test_a_seed_has_one_text_under_the_coupled_rule(pair, seed):
    from app.decoding.verifiers import make_verifier

    sampling = Sampling(temperature=0.8, top_k=6, seed=seed, **PENALTIES)
    asked = {"max_new_tokens": 40, "verifier": make_verifier("coupled", sampling)}
    found = decoded(pair, [3, 9, 27], sampling, draft_length=4, **asked)
    assert found.token_ids == plain(pair, [3, 9, 27], sampling, **asked).token_ids
    assert counts(found).accepted > 0


def tree_lane(target, head, sampling):
    """A lane of forty tokens with trees of four levels."""
    return make_lane(
        [3, 9, 27],
        proposer=tree_of(head, target, sampling),
        sampling=sampling,
        draft_length=4,
        max_new_tokens=40,
    )


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_after_each_round_what_is_held_is_what_a_fresh_pass_holds(pair, temperature):
    target, head = pair
    sampling = Sampling(temperature=temperature, top_k=4, seed=5)
    lane = tree_lane(target, head, sampling)
    sessions = opened(target, head)
    session = sessions._sessions["target"]
    kept = 0
    for event in run_lane(decode(lane), sessions, lambda: None):
        if isinstance(event, RoundCommitted):
            text = lane.text.ids
            assert session.unread(text) == 1  # the target's own token is never fed twice
            fresh = target.open(200, features=True)
            fresh.read(text[:-1], rows=1)
            held = len(text) - 1
            assert torch.allclose(session.features[:held], fresh.features[:held], atol=1e-4)
            mine, theirs = session._cache.inner.layers, fresh._cache.inner.layers
            for one, other in zip(mine, theirs, strict=True):
                assert torch.allclose(one.keys[:, :, :held], other.keys[:, :, :held], atol=1e-4)
                assert torch.allclose(one.values[:, :, :held], other.values[:, :, :held], atol=1e-4)
            kept += event.round.count("accepted")
    assert kept > 0


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_head_holds_what_a_fresh_one_makes_of_the_text(pair, temperature):
    # Nobody but the lane asks the sessions for anything here: the order of its passes is its own.
    target = pair[0]
    head = tiny_head(target, hears=1.0)
    sampling = Sampling(temperature=temperature, top_k=4, seed=5)
    lane = tree_lane(target, head, sampling)
    sessions = opened(target, head)
    beside = sessions._sessions["head"]
    kept = 0
    for event in run_lane(decode(lane), sessions, lambda: None):
        if isinstance(event, RoundCommitted):
            held = beside.held
            fresh = target.open(200, features=True)
            fresh.read(lane.text.ids[: held - 1], rows=1)
            anew = head.open(fresh, 200)
            anew.read(lane.text.ids[:held], rows=1)
            for mine, theirs in zip(pairs_of(beside), pairs_of(anew), strict=True):
                assert torch.allclose(mine[:, :, : held - 1], theirs[:, :, : held - 1], atol=1e-4)
            kept += event.round.count("accepted")
    assert kept > 0


def pairs_of(beside):
    return beside._cache.keys, beside._cache.values


def test_a_prompt_of_one_token_begins_with_a_plain_round(pair):
    found = decoded(pair, [3], draft_length=4, max_new_tokens=20)
    assert found.token_ids == plain(pair, [3], max_new_tokens=20).token_ids


@pytest.mark.parametrize("most", range(1, 14))
def test_a_cap_inside_a_path_ends_the_text_there(pair, most):
    whole = plain(pair, [3, 9, 27], max_new_tokens=40).token_ids
    found = decoded(pair, [3, 9, 27], draft_length=4, max_new_tokens=most)
    assert found.token_ids == whole[:most]
    assert found.finish == "length"


@pytest.mark.parametrize("context", range(5, 16))
def test_the_end_of_the_context_ends_the_text(pair, context):
    whole = plain(pair, [3, 9, 27], max_new_tokens=40).token_ids
    target, head = pair
    made = tree_of(head, target)
    lane = make_lane([3, 9, 27], proposer=made, draft_length=4, max_new_tokens=40, context=context)
    # The session holds the context, and beside it one tree.
    found = run(lane, opened(target, head, context + 12))
    assert found.token_ids == whole[: context - 3]
    assert found.finish == "context"
    assert violations(found) == []


def test_an_end_of_text_inside_a_path_discards_what_stands_behind_it(pair):
    whole = decoded(pair, [3, 9, 27], draft_length=4, max_new_tokens=40)
    inside = {
        round_.committed[place].id: round_
        for round_ in whole.rounds
        for place in range(round_.count("accepted") - 1)
    }
    tried = 0
    for token in inside:
        found = decoded(pair, [3, 9, 27], draft_length=4, max_new_tokens=40, end_ids=(token,))
        at = whole.token_ids.index(token)
        assert found.token_ids == whole.token_ids[: at + 1]
        assert found.finish == "end of text"
        last = found.rounds[-1] if found.rounds else None
        if last is not None and last.committed[-1].status == "accepted":
            assert {thrown.status for thrown in last.thrown} <= {"discarded"}
            tried += 1
    assert tried


def test_levels_are_counted_as_the_rounds_tell_them(pair):
    sampling = Sampling(temperature=1.0, top_k=5, seed=2)
    found = decoded(pair, [3, 9, 27], sampling, draft_length=4, max_new_tokens=120)
    tally = counts(found)
    # Again from the tokens alone: a level is decided if it is kept, or if a correction follows it.
    kept = [sum(t.status == "accepted" for t in r.committed) for r in found.rounds]
    corrected = [r.committed[-1].status == "corrected" for r in found.rounds]
    assert tally.accepted == sum(kept)
    assert tally.tested == sum(kept) + sum(corrected)
    assert tally.nodes == sum(r.width - 1 for r in found.rounds)
    assert tally.drafted < tally.nodes
    assert tally.tested <= tally.tested_nodes <= tally.nodes
    for place in acceptance_by_position(found.rounds):
        level = place.position
        assert place.accepted == sum(n >= level for n in kept)
        reached = (
            n >= level or (n == level - 1 and wrong)
            for n, wrong in zip(kept, corrected, strict=True)
        )
        assert place.reached == sum(reached)
    bonus = [r for r in found.rounds if r.count("bonus")]
    assert all(not r.count("rejected") for r in bonus)


def test_numbers_told_of_a_guess_are_those_of_its_own_row(pair):
    target = pair[0]
    sampling = Sampling(temperature=1.0, top_k=5, seed=2)
    found = decoded(pair, [3, 9, 27], sampling, draft_length=4, max_new_tokens=60, detail="full")
    text = [3, 9, 27, found.first.id]
    seen = 0
    for round_ in found.rounds:
        line = [*round_.committed, *(t for t in round_.thrown if t.status == "rejected")]
        behind = list(text)
        for token in line:
            if token.status == "rejected":
                behind = behind[:-1] if round_.committed[-1].status == "corrected" else behind
            logits = Session(target, 200).read(behind, rows=1).logits[0]
            best = torch.topk(torch.softmax(logits, -1), 5)
            law = dict(
                zip(best.indices.tolist(), (best.values / best.values.sum()).tolist(), strict=True)
            )
            assert token.target_probability == pytest.approx(law.get(token.id, 0.0), abs=1e-4)
            told = {one.id: one.probability for one in token.inspection.target}
            assert told == pytest.approx(law, abs=1e-4)
            seen += token.tried is not None and token.tried > 1
            behind.append(token.id)
        text += [token.id for token in round_.committed]
    assert seen


def test_a_round_asks_the_head_once_a_level_and_the_target_once(pair):
    target, head = pair
    sessions = opened(target, head)
    asked: list[tuple[str, int]] = []

    class Watched:
        def answer(self, request):
            if isinstance(request, Read):
                asked.append((request.role, len(request.block) if request.block else 0))
            return sessions.answer(request)

    lane = make_lane([3, 9, 27], proposer=tree_of(head, target), draft_length=4, max_new_tokens=2)
    run(lane, Watched())
    assert asked == [("target", 0), ("target", 0)]  # one token is left: nothing is guessed
    asked.clear()
    lane = make_lane([3, 9, 27], proposer=tree_of(head, target), draft_length=4, max_new_tokens=6)
    run(lane, Watched())
    assert asked[1:6] == [("head", 0), ("head", 3), ("head", 6), ("head", 9), ("target", 9)]
