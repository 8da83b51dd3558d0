"""Chains of guesses that a session makes by itself are those that are asked for one by one.

`fixed` computes each chain; `taped` records it once, and repeats its operations.
"""

from __future__ import annotations

import gc
import weakref
from functools import partial

import pytest
import torch
import transformers
from kept_drafts import NEAR, Counted, same_drafts, told, watched

from app.decoding.contracts import Chain
from app.decoding.draft_stop import ConfidenceStop
from app.decoding.drivers import Sessions
from app.decoding.proposers.draft_head import DraftHead, HeadSetup
from app.decoding.proposers.draft_model import DraftModel, DraftSetup
from app.decoding.proposers.pickings import HeadPicking
from app.decoding.sampling import warp
from app.library.head_folder import check_head
from app.models.block import Block
from app.models.fixed.chain import as_chain
from app.models.fixed.memory import Aim, PlacedLayer
from app.models.fixed.passes import Passes
from app.models.fixed.reader import FixedReader
from app.models.loaded_head import LoadedHead
from app.models.pair import DraftWidths
from app.models.picking import ChainReading, Told
from app.models.session import Session
from app.run.problems import Cancelled
from app.run.settings import Sampling
from published_heads import HIDDEN, first_version, third_version
from tapes import Tape, taped
from toys import (
    FakeClock,
    draft_model,
    make_lane,
    run,
    sessions,
    tiny_head,
    tiny_llama,
    wrapped,
)

SAMPLINGS = {
    "greedy": Sampling(),
    "drawn": Sampling(temperature=0.9, seed=4),
    "top-k": Sampling(temperature=1.1, top_k=7, seed=5),
    "top-p": Sampling(temperature=0.8, top_p=0.7, seed=6),
    "min-p": Sampling(temperature=1.3, min_p=0.1, top_k=30, seed=7),
    "penalised": Sampling(repetition_penalty=1.3, presence_penalty=0.4),
    "penalised-drawn": Sampling(temperature=0.9, top_p=0.9, repetition_penalty=1.2, seed=8),
}
PROMPT = [3, 1, 4, 1, 5]
CAPACITY = 90


def readers(mode: str, target, draft, counts=(), how=None, capacity=CAPACITY):
    """Sessions of both models in passes of fixed shape, and what was recorded of the draft's."""
    passes, tapes = taped() if mode == "taped" else (Passes("fixed"), None)
    both = sessions(target, FixedReader(draft, passes), capacity=capacity)
    both.prepare("draft", 2, behind=0, advance=lambda done, total: None)
    if counts:
        both.prepare_chain("draft", counts, how, behind=0, advance=lambda done, total: None)
    return Counted(both), tapes


def texts(mode, target, draft, *, sampling, length, chained, tokens=40, **changes):
    proposer = draft_model(
        width=target.width,
        sampling=sampling,
        prompt_length=len(PROMPT),
        chained=chained,
        **changes,
    )
    reader, _ = readers(
        mode, target, draft, [length] if chained else (), proposer.picking(), capacity=CAPACITY
    )
    ends = changes.get("end_ids", ())
    return watched(PROMPT, proposer, reader, sampling, length, tokens=tokens, end_ids=ends)


def whole(one) -> bool:
    """Whether a round kept all that was guessed."""
    return sum(token.status == "accepted" for token in one.committed) == one.drafted


@pytest.fixture(scope="module")
def pair():
    return tiny_llama(1), tiny_llama(1, noise=0.005)


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
@pytest.mark.parametrize("length", [1, 4, 8])
@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_guesses_laws_and_texts_are_those_of_one_by_one(pair, mode, length, sampling):
    alone, drafts, _ = texts(mode, *pair, sampling=sampling, length=length, chained=False)
    found, made, reader = texts(mode, *pair, sampling=sampling, length=length, chained=True)
    same_drafts(made, drafts)
    assert told(found) == told(alone)
    assert found.token_ids == alone.token_ids
    # The first round reads the prompt, and the last ones may guess less than a whole chain.
    missed = 0 if mode == "fixed" else length
    assert reader.made >= reader.asked - missed >= len(found.rounds) - missed - 2
    kept = [whole(one) for one in found.rounds if one.drafted]
    if length == 4:  # one token is new behind such a round, two behind the others
        assert not all(kept)
        assert any(kept)


def beside(mode: str, target, head, capacity: int) -> tuple[Sessions, object]:
    """Sessions of a target and its head, whose chains are of fixed shape."""
    passes, tapes = taped() if mode == "taped" else (Passes("fixed"), None)
    target.passes = passes
    session = head.open_target(capacity)
    return Sessions({"target": session, "head": head.open(session, capacity)}), tapes


def guessed_by(mode, head, *, sampling, length, chained, tokens=40, **changes):
    target = head.target
    proposer = DraftHead(
        HeadSetup(
            sampling=sampling,
            ids=head.ids,
            width=target.width,
            prompt_length=len(PROMPT),
            end_ids=changes.get("end_ids", ()),
        ),
        chained=chained,
    )
    both, _ = beside(mode, target, head, CAPACITY)
    if chained:
        both.prepare_chain(
            "head", [length], proposer.picking(), behind=4, advance=lambda done, total: None
        )
    reader = Counted(both)
    ends = changes.get("end_ids", ())
    return watched(PROMPT, proposer, reader, sampling, length, tokens=tokens, end_ids=ends)


@pytest.fixture(scope="module", params=["own", "eagle-1", "eagle-3"])
def head(request, tmp_path_factory):
    """A head of each kind; the own one and EAGLE-3's guess some of the target's tokens only."""
    if request.param == "own":
        return tiny_head(tiny_llama(1), hears=0.3)
    folder = tmp_path_factory.mktemp(request.param)
    target = tiny_llama(
        4, vocabulary=64, hidden_size=HIDDEN, num_hidden_layers=3, tie_word_embeddings=False
    )
    if request.param == "eagle-1":
        first_version(folder, 64, seed=2)
    else:
        third_version(folder, 64, ids=[token for token in range(64) if token % 5], seed=2)
    return LoadedHead(check_head(folder), target)


@pytest.mark.parametrize("sampling", ["greedy", "top-p", "min-p", "penalised", "penalised-drawn"])
@pytest.mark.parametrize("length", [1, 4])
@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_a_heads_guesses_laws_and_texts_are_those_of_one_by_one(head, mode, length, sampling):
    drawn = SAMPLINGS[sampling]
    alone, drafts, _ = guessed_by(mode, head, sampling=drawn, length=length, chained=False)
    found, made, reader = guessed_by(mode, head, sampling=drawn, length=length, chained=True)
    same_drafts(made, drafts)
    assert told(found) == told(alone)
    missed = 0 if mode == "fixed" else length
    assert reader.made >= reader.asked - missed >= len(found.rounds) - missed - 2


@pytest.mark.parametrize("sampling", ["greedy", "top-k", "penalised", "penalised-drawn"])
@pytest.mark.parametrize(("width", "shared"), [(48, 40), (80, 64), (64, 64)])
def test_vocabularies_of_other_widths_guess_the_same(width, shared, sampling):
    # Fewer ids than the target's, more, or as many; those that are not shared have no chance.
    target, draft = tiny_llama(1), tiny_llama(1, vocabulary=width)
    wanted = {"shared": shared, "rows": width, "sampling": SAMPLINGS[sampling], "length": 4}
    alone, drafts, _ = texts("taped", target, draft, chained=False, **wanted)
    found, made, reader = texts("taped", target, draft, chained=True, **wanted)
    same_drafts(made, drafts)
    assert told(found) == told(alone)
    assert reader.made > 3
    laws = [one.law for one in made if one.law is not None]
    assert all(law.shape[-1] == 64 and not law[:, shared:].any() for law in laws)


@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_a_draft_ends_at_the_end_of_the_text_as_it_does_one_by_one(pair, mode):
    plain, *_ = texts(mode, *pair, sampling=SAMPLINGS["top-k"], length=4, chained=False)
    wanted = {"sampling": SAMPLINGS["top-k"], "length": 6, "end_ids": [plain.token_ids[12]]}
    alone, drafts, _ = texts(mode, *pair, chained=False, **wanted)
    found, made, reader = texts(mode, *pair, chained=True, **wanted)
    same_drafts(made, drafts)
    assert told(found) == told(alone)
    assert any(one.stop == "end of text" and len(one.ids) < 6 for one in made)
    assert reader.made


@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_no_place_behind_the_drafts_context_is_asked_for(mode):
    # Positions are learned: one more would be an error. The session holds no token more, either.
    target, draft = tiny_llama(1), of_learned_places(24)

    def text_of(chained):
        proposer = draft_model(width=64, context=24, prompt_length=len(PROMPT), chained=chained)
        reader, _ = readers(mode, target, draft, [4], proposer.picking(), capacity=24)
        reader._reader._sessions["target"] = target.open(64)
        lane = make_lane(PROMPT, proposer=proposer, draft_length=4, max_new_tokens=40)
        return run(lane, reader), reader

    (alone, _), (found, reader) = text_of(False), text_of(True)
    assert told(found) == told(alone)
    assert {one.limited_by for one in found.rounds} >= {"draft length", "draft's context"}
    assert reader.made > 3


def of_learned_places(places: int):
    config = transformers.GPT2Config(
        vocab_size=64, n_positions=places, n_embd=32, n_layer=2, n_head=2
    )
    torch.manual_seed(3)
    return wrapped(transformers.GPT2LMHeadModel(config).eval())


@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_a_session_goes_on_from_a_chain_whatever_the_text_says_next(pair, mode):
    # Kept whole, kept in part, thrown away, sat out, taken back, and another text altogether.
    proposer, draft = draft_model(width=64, chained=True), pair[1]
    how = proposer.picking()
    passes = taped()[0] if mode == "taped" else Passes("fixed")
    session, plain = Session(FixedReader(draft, passes), 64), Session(draft, 64)
    session.prepare(2)
    session.prepare_chain([4], how, behind=0, advance=lambda done, total: None)
    text = [3, 1, 4]
    session.read(text, rows=1)
    for kept, new in ((4, [9]), (2, [7]), (0, [5]), (1, [2, 2, 2, 8]), (4, []), (0, [6])):
        reading = session.chain(text, 4, how=how, told=Told())
        expected = greedily(plain, text, 4)
        assert reading.block.ids == expected
        assert reading.chain.ids.tolist() == expected
        text += [*expected[:kept], *new]
    for other in (text[:9], [*text[:6], 11, 12], [8, 8, 8]):
        assert session.chain(other, 4, how=how, told=Told()).block.ids == greedily(plain, other, 4)
    assert session.chain(list(range(61)), 5, how=how, told=Told()) is None  # no room for the last


def greedily(session, text, count):
    block = Block()
    for _ in range(count):
        block.append(session.read(text, block, rows=1).logits[-1].argmax())
    return block.ids


def test_rows_that_are_padding_do_not_change_a_law(pair):
    # The second row of a first pass is padding behind one new token: whatever it is told.
    draft, how = pair[1], draft_model(width=64, sampling=SAMPLINGS["drawn"]).picking()
    laws = []
    for rubbish in (0, 63):
        session = Session(FixedReader(draft, Passes("fixed")), 64)
        session.read(PROMPT[:-1], rows=1)
        session._cache.room.rows(2).ids.fill_(rubbish)
        laws.append(session.chain(PROMPT, 3, how=how, told=Told([0.2, 0.6, 0.9])).chain.laws)
    assert torch.equal(*laws)
    alone = warp(Session(draft, 64).read(PROMPT, rows=1).logits, SAMPLINGS["drawn"])
    assert torch.allclose(laws[0][:1], alone, atol=NEAR)


@pytest.mark.parametrize(
    "changes",
    [
        {"shared_noise": True},
        {"stop": ConfidenceStop(0.3)},
        {"chained": False},
    ],
)
def test_what_needs_every_guess_before_the_next_asks_for_no_chain(pair, changes):
    proposer = draft_model(width=64, **{"chained": True, **changes})
    assert proposer.chains is None
    reader, _ = readers("fixed", *pair)
    run(make_lane(PROMPT, proposer=proposer, draft_length=4), reader)
    assert reader.asked == 0


class Refuses(Tape):
    """Records passes, but nothing that is longer than one."""

    def record(self, run):
        if isinstance(run, partial):
            return super().record(run)
        raise RuntimeError("too long")


def test_guesses_are_made_one_by_one_where_no_chain_could_be_recorded(pair):
    target, draft = pair
    passes, tapes = taped(Refuses)
    proposer = draft_model(width=64, prompt_length=len(PROMPT), chained=True)
    both = sessions(target, FixedReader(draft, passes), capacity=CAPACITY)
    both.prepare("draft", 2, behind=0, advance=lambda done, total: None)
    for _ in range(2):  # nor is it tried again
        both.prepare_chain(
            "draft", [4], proposer.picking(), behind=0, advance=lambda done, total: None
        )
    reader = Counted(both)
    found = run(make_lane(PROMPT, proposer=proposer, max_new_tokens=40), reader)
    alone, *_ = texts("fixed", *pair, sampling=Sampling(), length=4, chained=False)
    assert told(found) == told(alone)
    assert reader.asked > reader.made == 0
    assert passes.said == "captured graphs; chains one by one: they cannot be captured (too long)"
    assert tapes.replayed > len(found.rounds)
    with passes.kept():
        pass
    assert passes.said == "captured graphs"  # the next run tries again


def test_a_head_whose_chains_cannot_be_recorded_says_so():
    target = tiny_llama(1)
    head = tiny_head(target, hears=0.3)
    target.passes, _ = taped(Refuses)
    session = head.open(head.open_target(CAPACITY), CAPACITY)
    how = HeadPicking(Sampling(), 64, head.ids)
    session.prepare_chain([4], how, behind=0, advance=lambda done, total: None)
    assert target.passes.said == (
        "captured graphs; the head's chains one by one: they cannot be captured (too long)"
    )


def test_a_memory_is_aimed_at_places_no_longer_than_it_is_asked_to_be():
    aim = Aim()
    layer = PlacedLayer(64, aim)
    ones = torch.ones(1, 1, 2, 4)
    layer.update(ones, ones)
    with pytest.raises(RuntimeError, match="midway"), aim.at(torch.tensor([5, 6]), 16):
        raise RuntimeError("midway")
    keys, _ = layer.update(ones, ones)
    assert keys.shape[2] == 4  # behind the others, as ever


def test_a_chains_seconds_are_the_drafts_and_its_guesses_count_if_it_is_given_up(pair):
    clock = FakeClock()
    reader, _ = readers("fixed", *pair)
    answer = reader.answer

    def slow(request):
        found = answer(request)
        clock.spend({"Chain": 0.5, "Read": 0.125}.get(type(request).__name__, 0.0))
        return found

    reader.answer = slow
    proposer = draft_model(width=64, prompt_length=len(PROMPT), chained=True)
    rounds = run(make_lane(PROMPT, proposer=proposer, clock=clock), reader).rounds
    for one in rounds[1:]:
        assert one.phases.draft_calls == (0.5 if one.drafted else 0.0)
        assert one.phases.draft == one.phases.draft_calls
        assert one.phases.verify == 0.125
    stopped = run(
        make_lane(
            PROMPT,
            proposer=draft_model(width=64, prompt_length=len(PROMPT), chained=True),
            max_new_tokens=40,
        ),
        readers("fixed", *pair)[0],
        pause=stopping_behind_a_chain(),
    )
    assert stopped.abandoned.drafted == 4


def stopping_behind_a_chain():
    """Stops before the target reads what the second round's chain has guessed."""
    calls = iter(range(100))

    def pause():
        # The prompt; a question, four guesses, a verdict; a question, a chain; then the verdict.
        if next(calls) == 1 + 6 + 2:
            raise Cancelled

    return pause


@pytest.mark.parametrize("name", ["greedy", "top-p", "min-p", "penalised", "penalised-drawn"])
def test_guesses_are_taken_without_asking_the_device(name):
    # Tensors on `meta` have no values: to ask for one raises.
    meta, sampling = torch.device("meta"), SAMPLINGS[name]
    setup = DraftSetup(
        sampling=sampling,
        widths=DraftWidths(5000, 4000, 4500),
        context=64,
        device=meta,
        prompt_length=2,
        end_ids=[7],
        chained=True,
    )
    ids = torch.arange(4000, device=meta)
    head = DraftHead(
        HeadSetup(sampling=sampling, ids=ids, width=5000, prompt_length=2, end_ids=[7]),
        chained=True,
    )
    for proposer, width in ((DraftModel(setup), 4500), (head, 4000)):
        how = proposer.picking()
        row, draw = torch.empty(width, device=meta), torch.empty((), device=meta)
        made = as_chain([how.pick(row, draw, how.none_used(meta))] * 3, how)
        proposer._prompt_read = True
        asking = proposer.propose([1, 2, 3], limit=3, round_=0)
        next(asking)
        assert isinstance(asking.send(1), Chain)
        block = Block(device=meta)
        block.extend(made.fed)
        with pytest.raises(StopIteration) as done:
            asking.send(ChainReading(block, made))
        draft = done.value.value
        assert len(draft) == 3
        assert draft.block.tensor().device == draft.peaks.device == meta
        assert (draft.law is None) == sampling.greedy


@pytest.mark.parametrize("kind", ["own", "eagle-3"])
def test_the_pairs_of_a_text_are_fed_as_they_were_recorded(kind, tmp_path):
    # One to five pairs at once, in any order, behind guesses that are forgotten.
    target = tiny_llama(
        4, vocabulary=64, hidden_size=HIDDEN, num_hidden_layers=3, tie_word_embeddings=False
    )
    if kind == "own":
        head = tiny_head(target, hears=0.3)
    else:
        third_version(tmp_path, 64, ids=list(range(50)), seed=2)
        head = LoadedHead(check_head(tmp_path), target)
    plain = head.open(head.open_target(64), 64)
    both, tapes = beside("taped", target, head, 64)
    mine, how = both._sessions["head"], HeadPicking(Sampling(), 64, head.ids)
    mine.prepare_chain([4], how, behind=0, advance=lambda done, total: None)
    assert mine._room is not None
    assert plain._room is None
    text = [3, 1, 4]
    for number, new in enumerate([[9], [2, 6], [5, 3, 5, 8, 9], [7], [9, 3, 2], [3, 8, 4, 6]]):
        for session in (mine, plain):
            session.target.read(text[:-1], rows=1)
        before = tapes.replayed
        reading = mine.chain(text, 4, how=how, told=Told())
        assert tapes.replayed == before + 2  # a feed, and a chain
        block = Block()
        for _ in range(4):
            logits = plain.read(text, block, rows=1).logits[0]
            block.append(head.ids[logits.argmax()])
        assert reading.block.ids == block.ids, number
        assert mine.held == plain.held == len(text)
        text += new


@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_passes_that_become_eager_make_no_chains_any_more(pair, mode):
    draft, how = pair[1], draft_model(width=64).picking()
    passes = taped()[0] if mode == "taped" else Passes("fixed")
    session, plain = Session(FixedReader(draft, passes), 64), Session(draft, 64)
    session.prepare_chain([3], how, behind=0, advance=lambda done, total: None)
    text = [3, 1, 4, 1]
    assert session.chain(text, 3, how=how, told=Told()).block.ids == greedily(plain, text, 3)
    passes.fall_back("a test")
    text += [5, 9]
    assert session.chain(text, 3, how=how, told=Told()) is None
    assert greedily(session, text, 3) == greedily(plain, text, 3)


@pytest.mark.parametrize("kind", ["model", "head"])
def test_nothing_of_a_chain_is_held_once_its_session_is_gone(pair, kind):
    gc.collect()
    gc.disable()  # memory of a card has to be free at once
    try:
        target, draft = tiny_llama(1), pair[1]
        if kind == "model":
            proposer = draft_model(width=64)
            reader, _ = readers("taped", target, draft, [3], proposer.picking(), capacity=64)
            both, role = reader._reader, "draft"
            room = weakref.ref(both._sessions[role]._cache.room)
        else:
            head = tiny_head(target)
            both, _ = beside("taped", target, head, 64)
            proposer, role = head_proposer(head), "head"
            both.prepare_chain(role, [3], proposer.picking(), behind=0, advance=lambda *_: None)
            room = weakref.ref(both._sessions[role]._room)
        both._sessions["target"].read(PROMPT[:-1], rows=1)
        reading = both._sessions[role].chain(PROMPT, 3, how=proposer.picking(), told=Told())
        assert len(reading.block) == 3
        assert room() is not None
        reader = both = None
        assert room() is None
    finally:
        gc.enable()


def head_proposer(head) -> DraftHead:
    return DraftHead(
        HeadSetup(sampling=Sampling(), ids=head.ids, width=64, prompt_length=5, end_ids=())
    )
