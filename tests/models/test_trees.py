"""Guesses that branch: each row is that of its branch, and what is kept is as if read alone."""

import random

import pytest
import torch

from app.decoding.sampling import Penalties
from app.models.block import Block
from app.models.proofs import prove_trees
from app.models.session import Session
from app.models.tree import Tree, path_through
from app.run.settings import Sampling
from tiny_kinds import KINDS, STATEFUL, WINDOW, write_kind
from toys import tiny_llama, wrapped


def tree_block(ids, parents) -> Block:
    block = Block()
    depths = depths_of(parents)
    block.branch(torch.tensor(ids), torch.tensor(parents), levels=max(depths))
    return block


def depths_of(parents) -> list[int]:
    return [len(way_to(parents, place)) for place in range(len(parents))]


def way_to(parents, place) -> list[int]:
    """The places from the text down to a guess, by following its parents up."""
    way = []
    while place >= 0:
        way.insert(0, place)
        place = parents[place]
    return way


def random_parents(count: int, seed: int) -> list[int]:
    chance = random.Random(seed)
    return [chance.randrange(-1, place) if place else -1 for place in range(count)]


def loaded(tmp_path, kind: str, **changes):
    import transformers

    folder = write_kind(tmp_path / kind, kind, **changes)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return wrapped(model.eval())


def alone(model, text) -> torch.Tensor:
    """The row behind a text, read in one pass."""
    return Session(model, len(text)).read(text, rows=1).logits[0]


@pytest.mark.parametrize("seed", range(4))
def test_lineage_and_depths_are_those_of_following_parents_up(seed):
    parents = random_parents(13, seed)
    tree = Tree(torch.tensor(parents), max(depths_of(parents)))
    for place in range(13):
        way = way_to(parents, place)
        assert [at for at in range(13) if tree.lineage[place, at]] == way
        assert int(tree.depths[place]) == len(way)
    assert tree.places(3, 20).tolist() == [3, 4, 5, 6, *(6 + d for d in depths_of(parents))]


def test_a_text_walks_through_a_tree_as_far_as_it_is_in_it():
    ids, parents = [5, 7, 5, 9, 5], [-1, -1, 0, 0, 3]
    assert path_through(ids, parents, [5, 9, 5, 1]) == [0, 3, 4]
    assert path_through(ids, parents, [7, 5]) == [1]
    assert path_through(ids, parents, [9]) == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_of_a_tree_is_the_row_of_its_own_branch(tmp_path, kind):
    model = loaded(tmp_path, kind)
    proof = prove_trees(model)
    assert proof.holds, proof.note
    assert float(proof.note.split("(")[1].split(" of it")[0]) < 1e-3
    text = [(7 * place + 3) % 60 for place in range(WINDOW + 3)]
    ids = [4, 9, 4, 30, 8, 9, 17, 4, 22]
    parents = [-1, -1, 0, 0, 1, 2, 5, 3, 6]
    session = Session(model, 64)
    rows = session.read(text, tree_block(ids, parents), rows=len(ids) + 1).logits
    for place in range(-1, len(ids)):
        branch = [ids[at] for at in way_to(parents, place)]
        assert torch.allclose(rows[place + 1], alone(model, [*text, *branch]), atol=2e-3), place


@pytest.mark.parametrize("kind", STATEFUL)
def test_a_state_that_cannot_branch_is_refused_with_the_reason(tmp_path, kind):
    proof = prove_trees(loaded(tmp_path, kind))
    assert not proof.holds
    assert "guesses that branch" in proof.note


def test_a_model_that_ignores_the_mask_is_found_out():
    model = tiny_llama(3)
    own = model._told
    model._told = lambda placed: {"position_ids": own(placed)["position_ids"]} if placed else {}
    assert not prove_trees(model).holds


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("held", [torch.float32, torch.int8])
def test_what_is_kept_of_a_tree_is_as_if_it_had_been_read_alone(packed, held):
    if held is torch.int8 and not packed:
        pytest.skip("int8 is packed")
    model = tiny_llama(1, max_position_embeddings=256)
    if packed:
        model.pack(held)
        assert "lean pass" in model.kernel
    near = 0.3 if held is torch.int8 else 2e-4
    chance = random.Random(7)
    session = Session(model, 256, features=True)
    text = [3, 9, 27]
    for turn in range(12):
        count = 40 if turn == 5 else chance.randrange(1, 12)
        parents = random_parents(count, seed=turn)
        ids = [chance.randrange(64) for _ in range(count)]
        block = tree_block(ids, parents)
        rows = session.read(text, block, rows=count + 1).logits
        way = way_to(parents, chance.randrange(-1, count))
        behind = [ids[at] for at in way]
        row = rows[way[-1] + 1 if way else 0]
        assert apart(row, alone(model, [*text, *behind])) < near
        text += [*behind, chance.randrange(64)]
        # Tokens kept: at least the branch, whatever a text that was not guessed happens to say.
        assert len(text) - session.unread(text) >= len(text) - 1
        fresh = Session(model, 256, features=True)
        fresh.read(text[:-1], rows=1)
        held_here = len(text) - 1
        assert apart(session.features[:held_here], fresh.features[:held_here]) < near
        for mine, theirs in zip(
            session._cache.inner.layers, fresh._cache.inner.layers, strict=True
        ):
            assert apart(mine.keys[:, :, :held_here], theirs.keys[:, :, :held_here]) < near
            assert apart(mine.values[:, :, :held_here], theirs.values[:, :, :held_here]) < near


def apart(one, other) -> float:
    return float((one.float() - other.float()).norm() / other.float().norm())


def test_a_tree_of_another_text_is_forgotten():
    model = tiny_llama(2)
    session = Session(model, 64)
    text = [3, 9, 27]
    session.read(text, tree_block([4, 5, 6], [-1, 0, -1]), rows=4)
    other = [3, 9, 28, 4, 5]
    assert torch.allclose(session.read(other, rows=1).logits[0], alone(model, other), atol=1e-4)


def test_a_tree_that_is_read_again_is_read_as_a_whole():
    model = tiny_llama(2)
    session = Session(model, 64)
    text, block = [3, 9, 27], tree_block([4, 5, 6], [-1, 0, -1])
    first = session.read(text, block, rows=4).logits
    assert torch.allclose(session.read(text, block, rows=4).logits, first, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_penalties_see_the_path_of_each_row_and_no_neighbour(rows):
    sampling = Sampling(repetition_penalty=1.7, presence_penalty=0.3)
    text, prompt_length = [1, 2, 2, 5], 3
    ids, parents = [5, 7, 7, 9, 5, 11, 1], [-1, -1, 0, 0, 3, 3, 5]
    logits = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))[-rows:]
    mine = Penalties(sampling, prompt_length).apply(logits, text, tree_block(ids, parents))
    for row in range(rows):
        place = 8 - rows + row - 1
        path = [*text, *(ids[at] for at in way_to(parents, place))]
        expected = logits[row].clone()
        for token in set(path):
            expected[token] *= 1 / 1.7 if expected[token] > 0 else 1.7
        for token in set(path[prompt_length:]):
            expected[token] -= 0.3
        assert torch.allclose(mine[row], expected)
