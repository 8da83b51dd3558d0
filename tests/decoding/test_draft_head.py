"""Guesses of a draft head: aligned with the text, and drawn from the law that is handed on."""

import pytest
import torch

from app.decoding.proposers.draft_head import DraftHead as HeadProposer
from app.decoding.proposers.draft_head import HeadSetup
from app.decoding.proposers.in_order import InOrder
from app.decoding.proposers.ngram import Ngram
from app.library.head_folder import MadeFor, check_head
from app.models.draft_head import DraftHead, shape_for
from app.models.head_file import save_head
from app.models.loaded_head import LoadedHead
from app.run.metrics import counts
from app.run.settings import Sampling
from toys import Sessions, make_lane, run, tiny_llama

WIDTH = 32


def follows(token: int) -> int:
    """What a copying target writes behind a token: a walk through all ids."""
    return (5 * token + 3) % WIDTH


@pytest.fixture
def target():
    """A Llama whose feature of a token is the token itself, one number of 32, and no other."""
    model = tiny_llama(
        vocabulary=WIDTH, hidden_size=WIDTH, num_hidden_layers=1, tie_word_embeddings=False
    )
    inner, layer = model.inner, model.inner.model.layers[0]
    with torch.no_grad():
        inner.model.embed_tokens.weight.copy_(torch.eye(WIDTH))
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
        inner.model.norm.weight.fill_(1.0)
        inner.lm_head.weight.zero_()
        for token in range(WIDTH):
            inner.lm_head.weight[follows(token), token] = 1.0
    return model


def head_of(folder, target, fc, ids=None) -> LoadedHead:
    """A head that does nothing but multiply by `fc`, [hidden, 2 hidden]: embedding, feature."""
    ids = torch.arange(WIDTH) if ids is None else ids
    head = DraftHead(shape_for(target.inner, len(ids)))
    with torch.no_grad():
        head.fc.weight.copy_(fc)
        head.o_proj.weight.zero_()
        head.down_proj.weight.zero_()
    save_head(folder, head, ids, MadeFor("tiny", "unknown", WIDTH), "By hand.")
    return LoadedHead(check_head(folder), target)


def by_embedding():
    """The token t + 1 is its own feature."""
    return torch.cat([torch.eye(WIDTH), torch.zeros(WIDTH, WIDTH)], dim=1)


def by_feature():
    """What follows the token t is the feature of t + 1, in a text that the target has written."""
    step = torch.zeros(WIDTH, WIDTH)
    for token in range(WIDTH):
        step[follows(token), token] = 1.0
    return torch.cat([torch.zeros(WIDTH, WIDTH), step], dim=1)


def proposer(head, sampling=Sampling(), *, end_ids=(), **changes):
    setup = HeadSetup(
        sampling=sampling, ids=head.ids, width=WIDTH, prompt_length=2, end_ids=end_ids
    )
    return HeadProposer(setup, **changes)


def decoded(target, head, made, prompt, sampling=Sampling(), **changes):
    session = target.open(128, features=True)
    sessions = Sessions({"target": session, "head": head.open(session, 128)})
    lane = make_lane(prompt, proposer=made, sampling=sampling, **changes)
    return run(lane, sessions)


@pytest.mark.parametrize("fc", [by_embedding(), by_feature()], ids=["embedding", "feature"])
@pytest.mark.parametrize("length", [1, 2, 4])
def test_a_head_that_copies_the_targets_next_token_is_always_right(tmp_path, target, fc, length):
    head = head_of(tmp_path, target, fc)
    prompt = [1, follows(1)]
    repetition = decoded(
        target, head, proposer(head), prompt, draft_length=length, max_new_tokens=41
    )
    tally = counts(repetition)
    assert tally.drafted == tally.accepted >= 20
    assert repetition.token_ids == expected(prompt[-1], 41)


@pytest.mark.parametrize("shift", [1, 2])
def test_the_same_head_one_token_off_is_never_right(tmp_path, target, shift):
    # So the test above would see a pair that is put together wrongly.
    fc = by_embedding().roll(shift, dims=0)
    head = head_of(tmp_path, target, fc)
    tally = counts(decoded(target, head, proposer(head), [1, follows(1)], max_new_tokens=20))
    assert tally.accepted == 0 < tally.drafted


def test_a_token_outside_the_reduced_vocabulary_is_never_guessed(tmp_path, target):
    ids = torch.tensor([token for token in range(WIDTH) if token % 3])
    head = head_of(tmp_path, target, by_embedding(), ids)
    prompt = [1, follows(1)]
    repetition = decoded(target, head, proposer(head), prompt, max_new_tokens=41)
    assert repetition.token_ids == expected(prompt[-1], 41)
    guessed = [
        token.id
        for round_ in repetition.rounds
        for token in (*round_.committed, *round_.thrown)
        if token.source
    ]
    assert set(guessed) <= set(ids.tolist())
    assert 0 < counts(repetition).accepted < counts(repetition).drafted


def test_a_length_of_its_own_limits_its_drafts(tmp_path, target):
    head = head_of(tmp_path, target, by_embedding())
    made = proposer(head, length=2)
    repetition = decoded(target, head, made, [1, follows(1)], draft_length=6, max_new_tokens=30)
    assert {round_.drafted for round_ in repetition.rounds[:-1]} == {2}


def test_every_token_tells_which_of_two_guessed_it(tmp_path, target):
    head = head_of(tmp_path, target, by_embedding())
    ngram = Ngram(shortest=2, longest=4, end_ids=())
    # The walk comes back to its start after 32 tokens: from there on the text repeats.
    repetition = decoded(
        target,
        head,
        InOrder([ngram, proposer(head)]),
        [1, follows(1)],
        draft_length=4,
        max_new_tokens=80,
    )
    sources = [
        token.source for round_ in repetition.rounds for token in round_.committed if token.source
    ]
    first = sources.index("ngram")
    assert set(sources[:first]) == {"head"}
    assert set(sources[first:]) == {"ngram"}
    assert counts(repetition).drafted == counts(repetition).accepted


@torch.no_grad()
def test_a_drawn_guess_comes_from_the_law_that_is_handed_on(tmp_path, target):
    # The head's softmax over what it can guess, by hand; zero for every other token.
    ids = torch.tensor([0, 4, 8, 9, 17, 18, 23, 31])
    torch.manual_seed(0)
    head = head_of(tmp_path, target, torch.randn(WIDTH, 2 * WIDTH), ids)
    sampling = Sampling(temperature=0.7, seed=5)
    text = [1, 8, 3]
    drawn = torch.zeros(WIDTH)
    for round_ in range(3000):
        session = target.open(16, features=True)
        session.read(text[:-1], rows=1)
        sessions = Sessions({"target": session, "head": head.open(session, 16)})
        draft = answered(proposer(head, sampling).propose(text, limit=1, round_=round_), sessions)
        drawn[draft.block.ids[0]] += 1
        if round_ == 0:
            law = draft.law[0]
            logits = head.open(session, 16).read(text, rows=1).logits[0]
    by_hand = torch.zeros(WIDTH)
    by_hand[ids] = torch.softmax(logits / 0.7, dim=-1)
    assert torch.allclose(law, by_hand, atol=1e-6)
    assert float((drawn / 3000 - by_hand).abs().sum()) / 2 < 0.03


def answered(asking, sessions):
    answer = None
    while True:
        try:
            answer = sessions.answer(asking.send(answer))
        except StopIteration as done:
            return done.value


def test_a_text_of_one_token_has_nothing_to_guess_from(tmp_path, target):
    head = head_of(tmp_path, target, by_embedding())
    session = target.open(16, features=True)
    draft = answered(
        proposer(head).propose([3], limit=4, round_=0),
        Sessions({"target": session, "head": head.open(session, 16)}),
    )
    assert len(draft) == 0
    assert "feature" in draft.stop


def test_drafts_stop_at_an_end_of_text(tmp_path, target):
    head = head_of(tmp_path, target, by_embedding())
    end = follows(follows(follows(1)))
    made = proposer(head, end_ids=(end,))
    session = target.open(16, features=True)
    text = [1, follows(1)]
    session.read(text[:-1], rows=1)
    sessions = Sessions({"target": session, "head": head.open(session, 16)})
    draft = answered(made.propose(text, limit=6, round_=0), sessions)
    assert draft.block.ids == [follows(follows(1)), end]
    assert draft.stop == "end of text"


def expected(last: int, count: int) -> list[int]:
    found = []
    for _ in range(count):
        last = follows(last)
        found.append(last)
    return found
