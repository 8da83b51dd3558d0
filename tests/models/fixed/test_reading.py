"""Passes of fixed shape answer as eager ones: every architecture, padded, rewound, branching."""

import random

import pytest
import torch
import transformers

from app.models.block import Block
from app.models.early_exit import EarlyExit
from app.models.fixed.fixed_pass import PassRows
from app.models.fixed.passes import Passes
from app.models.fixed.proof import prove_passes
from app.models.fixed.reader import FixedReader
from app.models.session import Session
from app.run.identities import violations
from app.run.settings import Sampling
from tapes import taped
from tiny_kinds import KINDS, WINDOW, write_kind
from toys import draft_model, make_lane, run, tiny_llama, wrapped
from toys import sessions as sessions_of

CAPACITY = 96
NEAR = 2e-3
"""Logits of these models are up to some tens; rounding of fp32 moves them by far less."""


def of_kind(folder, kind: str, **changes):
    made = write_kind(folder / kind, kind, **changes)
    return wrapped(
        transformers.AutoModelForCausalLM.from_pretrained(made, dtype=torch.float32).eval()
    )


def pair_of(model, passes, capacity=CAPACITY, **wanted) -> tuple[Session, Session]:
    """A session of fixed shapes, and an eager one."""
    return (
        Session(FixedReader(model, passes), capacity, **wanted),
        Session(model, capacity, **wanted),
    )


def chance_block(chance: random.Random, *, trees: bool) -> Block:
    """Up to twelve guesses, one behind the other or as a tree."""
    ids = [chance.randrange(60) for _ in range(chance.randrange(13))]
    if not (trees and ids and chance.random() < 0.4):
        return Block(ids)
    parents = [chance.randrange(-1, place) if place else -1 for place in range(len(ids))]
    block = Block()
    block.branch(torch.tensor(ids), torch.tensor(parents), levels=len(ids))
    return block


def kept_of(chance: random.Random, block: Block) -> list[int]:
    """What a rule keeps of a block: some guesses on one path, and a token behind them."""
    kept, place = [], -1
    while chance.random() < 0.6:
        behind = [at for at, above in enumerate(block.parents) if above == place]
        if not behind:
            break
        place = chance.choice(behind)
        kept.append(block.ids[place])
    return [*kept, chance.randrange(60)]


def read_alike(fixed: Session, eager: Session, *, seed: int, trees: bool = True, turns=14) -> int:
    """Reads a text of chance with both, with guesses kept and thrown away; the passes compared."""
    chance = random.Random(seed)
    text = [chance.randrange(60) for _ in range(3)]
    for _ in range(turns):
        block = chance_block(chance, trees=trees)
        if len(text) + len(block) + 1 > fixed.capacity:
            return len(text)
        rows = len(block) + 1
        mine, theirs = (one.read(text, block, rows=rows).logits for one in (fixed, eager))
        assert mine.shape == theirs.shape
        assert torch.allclose(mine, theirs, atol=NEAR), (len(text), rows)
        assert fixed.held == eager.held
        text += kept_of(chance, block)
    return len(text)


@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture_answers_as_it_does_eagerly(kind, tmp_path):
    model = of_kind(tmp_path, kind)
    for seed in range(3):
        fixed, eager = pair_of(model, Passes("fixed"))
        assert read_alike(fixed, eager, seed=seed) > WINDOW + 8
    assert prove_passes(model, Passes("fixed")).holds


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_recorded_answers_for_other_places_and_guesses(kind, tmp_path):
    model = of_kind(tmp_path, kind)
    passes, tapes = taped()
    fixed, eager = pair_of(model, passes)
    fixed.prepare(13)
    recorded = tapes.recorded
    assert recorded == 10  # 1 to 8, 12 and 16 rows over the one number of keys
    read_alike(fixed, eager, seed=7)
    assert tapes.recorded == recorded
    assert tapes.replayed >= 10


@pytest.mark.parametrize("held", [torch.float32, torch.int8])
@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_the_lean_pass_answers_as_it_does_eagerly(held, mode):
    model = tiny_llama(1, max_position_embeddings=256)
    model.pack(held)
    assert "lean pass" in model.kernel
    fixed, eager = pair_of(model, taped()[0] if mode == "taped" else Passes("fixed"))
    fixed.prepare(13)
    if held is torch.float32:
        read_alike(fixed, eager, seed=4)
    assert prove_passes(model, Passes("fixed")).holds


@pytest.mark.parametrize("layers", [(), (0, 1)])
@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_features_are_those_of_eager_passes(layers, mode):
    model = tiny_llama(2)
    passes = taped()[0] if mode == "taped" else Passes("fixed")
    fixed, eager = pair_of(model, passes, features=True, layers=layers)
    fixed.prepare(13)
    read_alike(fixed, eager, seed=11)
    assert fixed.held > 20
    mine, theirs = (one.features[: fixed.held] for one in (fixed, eager))
    assert mine.shape == theirs.shape == (fixed.held, 32 * max(len(layers), 1))
    assert torch.allclose(mine, theirs, atol=NEAR)


def test_rows_that_are_no_padding_are_counted_whatever_was_told_before():
    rows, tree = PassRows(4, torch.device("cpu"), torch.float32), Block()
    tree.branch(torch.tensor([5, 6]), torch.tensor([-1, -1]), levels=1)
    for count, form in ((4, None), (3, None), (3, tree.tree), (1, None), (2, tree.tree), (4, None)):
        rows.load(torch.ones(count, dtype=torch.long), 7, form)
        assert rows.count.tolist() == [count]


@pytest.mark.parametrize("kind", ["gpt2", "opt"])
def test_no_padded_row_asks_for_a_position_that_was_never_learned(kind, tmp_path):
    model = of_kind(tmp_path, kind, max_position_embeddings=24)
    passes, tapes = taped()
    fixed, eager = pair_of(model, passes, capacity=24)
    fixed.prepare(9)
    text = list(range(10))
    for end, guesses in ((10, 8), (15, 4), (19, 5), (21, 2), (24, 0)):
        text = [*text, *range(30, 30 + end - len(text))]
        rows = guesses + 1
        mine, theirs = (
            one.read(text, Block(range(guesses)), rows=rows).logits for one in (fixed, eager)
        )
        assert torch.allclose(mine, theirs, atol=NEAR)
    assert tapes.replayed == 4  # all but the prompt's


def test_a_prompt_is_read_eagerly_into_the_same_memory():
    model = tiny_llama(3)
    passes, tapes = taped()
    fixed, eager = pair_of(model, passes, capacity=200)
    prompt = [7 * place % 64 for place in range(90)]
    fixed.prepare(1)
    for session in (fixed, eager):
        session.read(prompt[:60], rows=1)
        session.read(prompt, rows=1)
    assert tapes.replayed == 0
    mine, theirs = (one.read([*prompt, 5], rows=1).logits for one in (fixed, eager))
    assert tapes.replayed == 1
    assert torch.allclose(mine, theirs, atol=NEAR)


def test_no_row_sees_what_an_earlier_sequence_left_in_the_room():
    model = tiny_llama(3)
    passes, tapes = taped()
    with passes.rooms.kept():
        first = Session(FixedReader(model, passes), 64)
        first.prepare(4)
        first.read([9] * 20, rows=1)
        with torch.inference_mode():
            first._cache.inner.layers[0].values.fill_(float("nan"))
        del first
        fixed, eager = pair_of(model, passes, capacity=50)
        assert len(tapes.made) == 1  # the same room, with what is recorded in it
        fixed.prepare(4)
        assert tapes.recorded == 4
        read_alike(fixed, eager, seed=2, turns=6)


def test_the_first_layers_guess_in_memory_of_fixed_shapes():
    model = tiny_llama(4)
    beside, reads = EarlyExit(model, 1), []
    for session in pair_of(model, Passes("fixed")):
        exits, block = beside.open(session, CAPACITY), Block()
        session.read([3, 1, 4, 1], rows=1)
        for _ in range(3):
            logits = exits.read([3, 1, 4, 1, 5], block, rows=1).logits
            block.append(logits[0].argmax())
        reads.append((block.ids, session.read([3, 1, 4, 1, 5], block, rows=4).logits))
    assert reads[0][0] == reads[1][0]
    assert torch.allclose(reads[0][1], reads[1][1], atol=NEAR)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.8, seed=5)])
@pytest.mark.parametrize("gamma", [1, 4, 7])
def test_texts_are_those_of_eager_passes(gamma, sampling):
    target, draft = tiny_llama(1), tiny_llama(1, noise=0.02)

    def text_of(mine, other):
        reader = sessions_of(mine, other, capacity=80)
        for role in ("target", "draft"):
            reader._sessions[role].prepare(gamma + 1)
        proposer = draft_model(width=64, sampling=sampling, prompt_length=3)
        lane = make_lane(
            [3, 1, 4],
            sampling=sampling,
            proposer=proposer,
            draft_length=gamma,
            max_new_tokens=60,
        )
        found = run(lane, reader)
        assert violations(found) == []
        return found.token_ids

    eager = text_of(target, draft)
    assert len(eager) == 60
    assert text_of(*(FixedReader(one, Passes("fixed")) for one in (target, draft))) == eager
    passes, tapes = taped()
    assert text_of(*(FixedReader(one, passes) for one in (target, draft))) == eager
    assert tapes.replayed > 60 // (gamma + 1)


@pytest.mark.parametrize("kind", ["gemma3", "mistral"])
def test_a_tree_deeper_than_a_window_sees_by_positions(kind, tmp_path):
    # Siblings lie between the guesses of a branch, so that a key's place is no position.
    model = of_kind(tmp_path, kind)
    parents = [-1, -1, *(place // 2 * 2 for place in range(24))]
    depth = 13
    assert depth > WINDOW
    answers = []
    for session in pair_of(model, Passes("fixed")):
        block = Block()
        block.branch(torch.arange(26), torch.tensor(parents), levels=depth)
        answers.append(session.read([5, 6, 7], block, rows=27).logits)
    assert torch.allclose(*answers, atol=NEAR)


def test_what_was_read_stays_when_the_same_pass_is_replayed():
    fixed, eager = pair_of(tiny_llama(5), taped()[0])
    fixed.prepare(1)
    fixed.read([1, 2], rows=1)
    mine = [fixed.read([1, 2, *range(3, end)], rows=1).logits for end in range(4, 8)]
    theirs = [eager.read([1, 2, *range(3, end)], rows=1).logits for end in range(4, 8)]
    assert torch.allclose(torch.cat(mine), torch.cat(theirs), atol=NEAR)
