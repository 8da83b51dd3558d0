"""The first layers' chains of guesses leave the target's session as it was.

`fixed` computes each chain; `taped` records it once, and repeats its operations.
"""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from first_layers import (
    CAPACITY,
    CPU,
    LAYERS,
    PROMPT,
    beside,
    exiting_target,
    greedily,
    passes_of,
    proposer_of,
)
from kept_drafts import NEAR, quiet

from app.library.preflight import check
from app.models.block import Block
from app.models.early_exit import EarlyExit
from app.models.fixed.passes import Passes
from app.models.loading import load
from app.models.picking import Picked, Told
from app.run.problems import Cancelled
from tiny_kinds import KINDS, WINDOW, write_kind


@pytest.fixture(scope="module")
def target():
    return exiting_target()


def held(session):
    """All that a session holds of its text: keys, values and features, and what it knows of it."""
    length = session.held
    layers = session._cache.inner.layers
    tensors = [one[:, :, :length].clone() for layer in layers for one in (layer.keys, layer.values)]
    features = [session.features[:length].clone()] if session._keeps_features else []
    lengths = [layer.length for layer in layers]
    return [*tensors, *features], (length, lengths, session._settled, session._block_fed)


def unchanged(session, before):
    tensors, known = held(session)
    assert known == before[1]
    assert all(torch.equal(*both) for both in zip(tensors, before[0], strict=True))


def of_kind(folder, kind):
    """A model of three layers of an architecture, as a run has it."""
    slides = ["sliding_attention", "full_attention", "sliding_attention"]
    changes = {"layer_types": slides} if kind == "gemma3" else {}
    folder = write_kind(folder, kind, num_hidden_layers=LAYERS, **changes)
    return load(check(folder), name="Target", precision="fp32", device=CPU).model


@pytest.mark.parametrize(
    ("kind", "mode"),
    [*((kind, "fixed") for kind in KINDS), *((kind, "taped") for kind in ("llama", "gemma3"))],
)
def test_the_target_is_in_the_middle_as_it_was_whatever_its_kind(kind, mode, tmp_path):
    # Both with the lean pass and with the layers of transformers cut, past a sliding window.
    model = of_kind(tmp_path / "m", kind)
    how = proposer_of(model).picking()
    text = [(17 * place + 3) % 250 for place in range(2 * WINDOW)]
    plain = model.open(CAPACITY)
    model.passes, tapes = passes_of(mode)
    session = model.open(CAPACITY)
    mine, theirs = (EarlyExit(model, 2).open(one, CAPACITY) for one in (session, plain))
    for one in (session, plain):
        one.read(text[:-1], rows=1)
    session.prepare(5, behind=len(text) - 1)
    mine.prepare_chain([4], how, behind=len(text) - 1, advance=quiet)
    for new in ([5], [7, 200], [9, 3, 11]):
        session.unread(text)
        before, replayed = held(session), tapes.replayed if tapes else 0
        reading = mine.chain(text, 4, how=how, told=Told())
        unchanged(session, before)
        assert not tapes or tapes.replayed == replayed + 1
        guesses = greedily(theirs, text, 4)
        assert reading.block.ids == reading.chain.ids.tolist() == guesses
        rows = [one.read(text, Block(guesses), rows=5).logits for one in (session, plain)]
        assert torch.allclose(*rows, atol=1e-4)
        text += [*guesses[: len(new) - 1], new[-1]]


@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_features_of_the_target_are_as_they_were(target, mode):
    target.passes, _ = passes_of(mode)
    session = target.open(CAPACITY, features=True)
    how = proposer_of(target).picking()
    exits, text = EarlyExit(target).open(session, CAPACITY), [*PROMPT]
    session.read(text[:-1], rows=1)
    session.prepare(3, behind=4)
    exits.prepare_chain([3], how, behind=4, advance=quiet)
    for _ in range(3):
        session.unread(text)
        before = held(session)
        reading = exits.chain(text, 3, how=how, told=Told())
        unchanged(session, before)
        session.read(text, reading.block, rows=4)
        first, second, _ = reading.block.ids
        text += [first, (second + 1) % target.width]


@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_first_layers_go_on_from_a_chain_whatever_is_asked_next(target, mode):
    plain = EarlyExit(target, 2)
    target.passes = Passes()
    theirs = plain.open(target.open(CAPACITY), CAPACITY)
    both, _ = beside(mode, target, layers=2)
    session, mine = both._sessions["target"], both._sessions["draft"]
    how, text = proposer_of(target).picking(), [*PROMPT]
    both.prepare_chain("draft", [3], how, behind=0, advance=quiet)
    for one in (session, theirs.target):
        one.read(text[:-1], rows=1)
    expected = greedily(theirs, text, 5)
    reading = mine.chain(text, 3, how=how, told=Told())
    block = reading.block
    assert block.ids == expected[:3]
    for _ in range(2):  # one by one behind it, then all anew
        block.append(mine.read(text, block, rows=1).logits[-1].argmax())
    assert block.ids == greedily(mine, text, 5) == expected
    assert mine.chain(text, 3, how=how, told=Told()).block.ids == expected[:3]
    for other in ([*text, 9, 7], [3, 1, 8], [8, 8]):  # two are new, some are taken back, others
        for one in (session, theirs.target):
            one.read(other, rows=1, upto=max(len(other) - 2, 1))
        assert mine.chain(other, 3, how=how, told=Told()).block.ids == greedily(theirs, other, 3)


@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_what_no_chain_holds_is_asked_for_one_by_one(target, mode):
    both, _ = beside(mode, target, capacity=12)
    session, exits = both._sessions["target"], both._sessions["draft"]
    how, text = proposer_of(target).picking(), [*PROMPT]
    both.prepare_chain("draft", [4], how, behind=0, advance=quiet)
    assert exits.chain(text, 4, how=how, told=Told()) is None  # all five tokens are unread
    session.read(text[:-1], rows=1)
    assert exits.chain(text, 17, how=how, told=Told()) is None  # longer than any
    assert (exits.chain(text, 3, how=how, told=Told()) is None) == (mode == "taped")
    assert len(exits.chain(text, 4, how=how, told=Told()).block) == 4
    text = list(range(10))
    session.read(text[:-1], rows=1)
    assert exits.chain(text, 4, how=how, told=Told()) is None  # no room for the last that is fed
    text = text[:9]
    session.unread(text[:8])
    assert exits.chain(text, 4, how=how, told=Told()) is not None
    target.passes.fall_back("a test")
    assert exits.chain(text, 4, how=how, told=Told()) is None
    assert len(greedily(exits, text, 3)) == 3


@pytest.mark.parametrize("mode", ["eager", "fixed", "taped"])
def test_the_last_token_is_fed_again_where_the_target_has_read_it(target, mode):
    # A rule may write the very guess that it has rejected: the target holds it then.
    both, _ = beside(mode, target)
    session, exits = both._sessions["target"], both._sessions["draft"]
    how, text = proposer_of(target).picking(), [*PROMPT]
    both.prepare_chain("draft", [3], how, behind=0, advance=quiet)
    session.read(text[:-1], rows=1)
    expected, row = greedily(exits, text, 3), session.read(text, rows=1).logits
    assert session.unread(text) == 0
    if mode != "eager":
        assert exits.chain(text, 3, how=how, told=Told()).block.ids == expected
        session.read(text, rows=1)
    assert greedily(exits, text, 3) == expected
    assert session.held == len(text) - 1
    assert torch.allclose(session.read(text, rows=1).logits, row, atol=NEAR)


def test_a_session_that_was_opened_for_eager_passes_makes_no_chains(target):
    target.passes = Passes()
    session = target.open(CAPACITY)
    target.passes = Passes("fixed")
    session.read(PROMPT[:-1], rows=1)
    exits, how = EarlyExit(target).open(session, CAPACITY), proposer_of(target).picking()
    exits.prepare_chain([3], how, behind=0, advance=quiet)
    assert exits.chain(PROMPT, 3, how=how, told=Told()) is None


def test_recording_behind_a_text_leaves_the_target_as_it_was(target):
    # Another turn of a conversation: the session holds the turn before.
    both, tapes = beside("taped", target)
    session, exits = both._sessions["target"], both._sessions["draft"]
    session.read(list(range(20)), Block([1, 2]), rows=3)
    session.unread([*range(20), 1])
    before, recorded = held(session), tapes.recorded
    exits.prepare_chain([2, 4], proposer_of(target).picking(), behind=5, advance=quiet)
    assert tapes.recorded > recorded
    unchanged(session, before)


@pytest.mark.parametrize("what", ["recorded", "computed"])
def test_a_chain_that_is_broken_off_leaves_the_target_as_it_was(target, monkeypatch, what):
    both, _ = beside("taped" if what == "recorded" else "fixed", target)
    session, exits = both._sessions["target"], both._sessions["draft"]
    how = proposer_of(target).picking()
    session.read(PROMPT[:-1], rows=1)
    before, layers = held(session), target.inner.model.layers

    def broken(done, total):
        raise Cancelled

    if what == "recorded":
        with pytest.raises(Cancelled):
            exits.prepare_chain([4], how, behind=4, advance=broken)
    else:
        picks = iter(range(100))
        with monkeypatch.context() as patch:
            patch.setattr(type(how), "pick", lambda *_: _third(picks))
            with pytest.raises(RuntimeError, match="midway"):
                exits.chain(PROMPT, 4, how=how, told=Told())
    unchanged(session, before)
    assert target.inner.model.layers is layers
    exits.prepare_chain([4], how, behind=4, advance=quiet)
    guesses = exits.chain(PROMPT, 4, how=how, told=Told()).block.ids
    assert guesses == greedily(exits, PROMPT, 4)
    unchanged(session, before)


def _third(picks):
    if next(picks) == 2:
        raise RuntimeError("midway")
    return Picked(torch.tensor(5), None, torch.tensor(1.0))


def test_nothing_of_a_chain_is_held_once_its_sessions_are_gone(target):
    gc.collect()
    gc.disable()  # memory of a card has to be free at once
    try:
        both, _ = beside("taped", target)
        how = proposer_of(target).picking()
        both.prepare_chain("draft", [3], how, behind=0, advance=quiet)
        both._sessions["target"].read(PROMPT[:-1], rows=1)
        reading = both._sessions["draft"].chain(PROMPT, 3, how=how, told=Told())
        assert len(reading.block) == 3
        room = weakref.ref(both._sessions["target"]._cache.room)
        both = None
        assert room() is None
    finally:
        gc.enable()
