"""The proposer of suffix decoding: which text it copies from, and that the target's text stays."""

import contextlib
from unittest.mock import MagicMock

import pytest
import torch

from app.decoding.proposers import Surroundings, make_proposer
from app.decoding.proposers.count_trie import CountTrie, GrowingText
from app.decoding.proposers.match_places import LastPlaces
from app.decoding.proposers.suffix import Suffix
from app.models.pair import DraftWidths
from app.run.identities import violations
from app.run.metrics import counts
from app.run.settings import Sampling
from toys import make_lane, run, sessions, tiny_llama

END = 99


def suffix(earlier=(), *, depth=8, factor=1.0, offset=0.0, least=0.1, end_ids=()):
    trie = CountTrie(depth)
    for text in earlier:
        trie.add(text)
    return Suffix(
        depth=depth,
        factor=factor,
        offset=offset,
        least_probability=least,
        end_ids=end_ids,
        earlier=trie,
    )


def drafted(proposer, text, limit=8):
    try:
        next(proposer.propose(text, limit=limit, round_=0))
    except StopIteration as done:
        return done.value
    raise AssertionError("it asked for a pass")


def test_the_higher_score_wins_and_this_text_wins_a_draw():
    here = [1, 2, 3, 9, 1, 2]
    one = drafted(suffix([[1, 2, 4, 5]]), here)
    assert (one.block.ids, one.source) == ([4, 5], "suffix-earlier")  # 2 to 1
    # Of this text's two places with 2 one goes on with 3, of the other's one all with 4.
    likelier = drafted(suffix([[0, 2, 4]], factor=0.5, offset=0.5), [2, 3, 8, 2])
    assert (likelier.block.ids, likelier.source) == ([4], "suffix-earlier")
    own = drafted(suffix([[1, 2, 4], [1, 2, 5]]), here)
    assert (own.block.ids, own.source) == ([3, 9], "suffix")  # 1 to 1


@pytest.mark.parametrize("method", ["suffix", "ngram", "cascade", "ngram-else-head"])
def test_the_prompt_is_taken_in_before_the_first_round(method, monkeypatch):
    prompt, taken = [1, 2, 3, 9, 1, 2], []
    append, note = GrowingText.append, LastPlaces.note
    monkeypatch.setattr(
        GrowingText, "append", lambda text, token: (taken.append(token), append(text, token))
    )
    monkeypatch.setattr(
        LastPlaces, "note", lambda *here, **of: (taken.append(here[2]), note(*here, **of))
    )
    around = Surroundings(
        Sampling(),
        end_ids=(),
        prompt_length=len(prompt),
        device=torch.device("cpu"),
        draft_device=torch.device("cpu"),
        widths=DraftWidths(10, 10, 10),
        draft_context=64,
        head=MagicMock(ids=torch.arange(10)),
        width=10,
        prompt=tuple(prompt),
    )
    proposer = make_proposer(method, {}, around)
    assert taken
    taken.clear()
    asking = proposer.propose(prompt, limit=2, round_=0)
    with contextlib.suppress(StopIteration):
        next(asking)
    assert taken == []


def test_the_longer_the_match_the_more_is_guessed():
    text = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]
    lengths = {
        (factor, offset): len(drafted(suffix(factor=factor, offset=offset, depth=24), text))
        for factor, offset in ((0.5, 0.0), (1.0, 0.0), (1.0, 2.0), (2.0, 0.0), (0.0, 0.0))
    }
    assert lengths == {(0.5, 0.0): 1, (1.0, 0.0): 3, (1.0, 2.0): 5, (2.0, 0.0): 6, (0.0, 0.0): 0}
    assert len(drafted(suffix(factor=2.0, depth=24), text, limit=4)) == 4
    assert len(drafted(suffix(factor=2.0, depth=5), text)) == 3  # with a match of 2, or 2 with 3


def test_unlikely_continuations_are_not_guessed():
    text = [1, 2, 1, 3, 1, 4, 1, 5, 1]  # each of four tokens follows one of five places of 1
    assert len(drafted(suffix(least=0.2), text)) == 1
    nothing = drafted(suffix(least=0.21), text)
    assert (len(nothing), nothing.stop) == (0, "no match")


def test_nothing_is_guessed_behind_an_end_of_text():
    assert drafted(suffix([[1, 2, END, 5]], end_ids=[END]), [8, 1, 2]).block.ids == [END]


def test_earlier_texts_are_read_and_not_written():
    proposer = suffix([[1, 2, 3]])
    trie = proposer._earlier
    drafted(proposer, [7, 7, 7, 1, 2])
    assert trie.find([7]) is None
    assert trie.find([1, 2, 3]).node.count == 1


SAMPLINGS = {
    "plain": Sampling(),
    "penalised": Sampling(repetition_penalty=1.3, presence_penalty=0.4),
}


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
@pytest.mark.parametrize("gamma", range(1, 9))
def test_greedy_text_is_the_plain_one_at_every_draft_length(gamma, sampling):
    target, prompt = tiny_llama(1), [3, 1, 4, 1, 5]
    plain = run(make_lane(prompt, sampling=sampling, max_new_tokens=60), sessions(target))
    half = plain.token_ids[:30]
    for earlier in ([], [half], [half, [4, 1, 3, 3], half[::-1]]):
        lane = make_lane(
            prompt,
            proposer=suffix(earlier, factor=2.0, offset=1.0),
            sampling=sampling,
            draft_length=gamma,
            max_new_tokens=60,
        )
        fast = run(lane, sessions(target))
        assert fast.token_ids == plain.token_ids
        assert violations(fast) == []
        assert counts(fast).drafted > 0
