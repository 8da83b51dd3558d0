"""Guesses of a chain see what the text and the guesses before them have used.

What is right is found here from plain logits, by transformers' processors; and, lane by lane, from
guesses that are asked for one by one. `fixed` computes each chain, `taped` repeats a recording.
"""

from __future__ import annotations

from itertools import accumulate

import pytest
import torch
import whole_lanes
from kept_drafts import NEAR, Counted, quiet, same_drafts, told, watched
from transformers import (
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
)
from whole_lanes import WholeLanes

from app.decoding.drivers import Sessions
from app.decoding.proposers.draft_head import DraftHead, HeadSetup
from app.decoding.proposers.intersected import Intersected
from app.decoding.proposers.pickings import DraftPicking, law_of
from app.decoding.randomness import draw
from app.models.block import Block
from app.models.fixed.passes import Passes
from app.models.picking import Told
from app.models.retold import Retold
from app.run.settings import Sampling
from tapes import Tapes, taped
from toys import draft_model, make_lane, run, tiny_head, tiny_llama

CPU = torch.device("cpu")
GREEDY = Sampling(repetition_penalty=1.4, presence_penalty=0.6)
DRAWN = Sampling(
    temperature=0.9, top_k=30, min_p=0.01, repetition_penalty=1.4, presence_penalty=-0.6, seed=4
)
SAMPLINGS = pytest.mark.parametrize("sampling", [GREEDY, DRAWN], ids=["greedy", "drawn"])
MODES = pytest.mark.parametrize("mode", ["fixed", "taped"])
PROMPT = [3, 1, 4, 1, 5]
COUNT = 5


@pytest.fixture(scope="module")
def lanes(tmp_path_factory):
    home = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_lanes, "PROMPT", PROMPT)  # which has not seen every token
        yield WholeLanes(home, CPU, lambda inner: None)


def lane_of(lanes, method, sampling, mode=None, tokens=40):
    """What a lane writes, its drafts as the rule was given them, and its reader."""
    proposer, both = lanes.guessing(
        method, sampling, chained=mode is not None, recorder=Tapes() if mode == "taped" else None
    )
    if mode == "taped":
        for role in ("target", "draft"):
            both.prepare(role, COUNT + 1, behind=4, advance=quiet)
        asked = proposer.chains
        both.prepare_chain(asked.role, [asked.longest or COUNT], asked.how, behind=4, advance=quiet)
    return watched(PROMPT, proposer, Counted(both), sampling, COUNT, tokens=tokens)


@MODES
@SAMPLINGS
@pytest.mark.parametrize("method", ["draft-model", "tli", "slem", "head", "ngram-else-head"])
def test_drafts_and_texts_are_those_of_one_by_one(lanes, method, sampling, mode):
    alone, drafts, _ = lane_of(lanes, method, sampling)
    found, made, reader = lane_of(lanes, method, sampling, mode)
    same_drafts(made, drafts)
    assert told(found) == told(alone)
    assert reader.made > 3
    kept = {token.status for one in found.rounds for token in (*one.committed, *one.thrown)}
    assert "rejected" in kept  # whose marks must not stay


@MODES
@pytest.mark.parametrize("method", ["draft-model", "tli", "head"])
def test_a_greedy_text_is_the_plain_one(lanes, method, mode):
    found, _, reader = lane_of(lanes, method, GREEDY, mode)
    target = lanes.guessing(method, GREEDY)[1]
    plain = run(make_lane(PROMPT, sampling=GREEDY, max_new_tokens=40), target)
    assert found.token_ids == plain.token_ids
    assert reader.made > 3


def law_behind(logits, ids, written, sampling):
    """The law of the row [width] behind `ids`, of which some were `written`, and its best token."""
    seen = torch.tensor([ids])
    row = RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty)(seen, logits[None].clone())
    for token in set(written):
        row[0, token] -= sampling.presence_penalty
    if sampling.greedy:
        return None, int(row.argmax())
    row = TopKLogitsWarper(sampling.top_k)(seen, TemperatureLogitsWarper(0.9)(seen, row))
    law = torch.softmax(row, dim=-1)[0]
    law = torch.where(law < sampling.min_p * law.max(), 0.0, law)
    return law / law.sum(), None


def enumerated(row_behind, text, sampling, *, marks=True):
    """Ids and laws of guesses behind a text, each by all tokens before it; without `marks`, by
    those of the text only. `row_behind` gives the row [width of the target] behind guesses.
    """
    guesses, laws = [], []
    for slot in range(COUNT):
        before = guesses if marks else []
        law, token = law_behind(
            row_behind(guesses), [*text, *before], [*text[len(PROMPT) :], *before], sampling
        )
        if law is not None:
            laws.append(law)
            at = draw(sampling.seed, "draft", 1, slot)
            sums = [*accumulate(law.double().tolist())]
            token = next(place for place, total in enumerate(sums) if total > at * sums[-1])
        guesses.append(token)
    return guesses, laws


class Drafter:
    """A proposer behind its first round, its sessions, and what the rows of its guesses are."""

    def __init__(self, kind, lanes, sampling, mode):
        self.passes = taped()[0] if mode == "taped" else Passes("fixed")
        self.proposer, self.both, self.role, self.row = getattr(self, kind)(lanes, sampling)
        self.proposer._prompt_read = True
        how = self.proposer.picking()
        self.both.prepare_chain(self.role, [COUNT], how, behind=0, advance=quiet)

    def made(self, text):
        """Ids and laws of the chain behind a text; it is one."""
        asking = self.proposer.propose(text, limit=COUNT, round_=1)
        reader, answer = Counted(self.both), None
        if self.role == "head":
            self.both._sessions["target"].read(text[:-1], rows=1)
        while True:
            try:
                answer = reader.answer(asking.send(answer))
            except StopIteration as done:
                assert reader.made == reader.asked == 1
                return done.value.block.ids, done.value.law

    def model(self, lanes, sampling):
        draft = tiny_llama(1)

        def row(text, guesses):
            return draft.inner(torch.tensor([[*text, *guesses]])).logits[0, -1]

        proposer = draft_model(width=64, sampling=sampling, prompt_length=len(PROMPT), chained=True)
        draft.passes = self.passes
        return proposer, Sessions({"draft": draft.open(90)}), "draft", row

    def bridged(self, lanes, sampling):
        proposer, both = lanes.guessing("tli", sampling, chained=True)
        assert isinstance(proposer, Intersected)
        bridge = proposer._bridge
        draft = both._sessions["draft"]._model._model
        width = proposer._width
        draft.passes = self.passes

        def row(text, guesses):
            own = [*Retold(bridge).follow(text), *(bridge.own[token] for token in guesses)]
            logits = draft.inner(torch.tensor([own])).logits[0, -1]
            whole = torch.full((width,), -torch.inf)
            for mine, theirs in zip(bridge.shared.target_ids, bridge.shared.draft_ids, strict=True):
                whole[mine] = logits[theirs]
            return whole

        return proposer, Sessions({"draft": draft.open(90)}), "draft", row

    def head(self, lanes, sampling):
        target = tiny_llama(1)
        head = tiny_head(target, hears=0.3)
        eager = head.open(head.open_target(90), 90)
        target.passes = self.passes
        session = head.open_target(90)
        both = Sessions({"target": session, "head": head.open(session, 90)})
        setup = HeadSetup(
            sampling=sampling,
            ids=head.ids,
            width=target.width,
            prompt_length=len(PROMPT),
            end_ids=(),
        )
        proposer = DraftHead(setup, chained=True)

        def row(text, guesses):
            eager.target.read(text[:-1], rows=1)
            block = Block(guesses)
            whole = torch.full((target.width,), -torch.inf)
            whole[head.ids] = eager.read(text, block, rows=1).logits[0]
            return whole

        return proposer, both, "head", row


TEXTS = [[*PROMPT, 9], [*PROMPT, 9, 2, 6, 5], [*PROMPT, 9, 2, 6, 5, 9, 9, 40, 41, 42, 43]]


@MODES
@SAMPLINGS
@pytest.mark.parametrize("kind", ["model", "bridged", "head"])
@torch.inference_mode()
def test_guesses_are_those_that_all_tokens_before_them_lead_to(lanes, kind, sampling, mode):
    drafter = Drafter(kind, lanes, sampling, mode)
    differs = 0
    for text in TEXTS:

        def row_behind(guesses, text=text):
            return drafter.row(text, guesses)

        ids, laws = enumerated(row_behind, text, sampling)
        for _ in range(2):  # the marks of a chain are not there in the next one
            made, law = drafter.made(text)
            assert made == ids
            assert (law is None) == sampling.greedy
            assert law is None or torch.allclose(law, torch.stack(laws), atol=NEAR)
        unmarked, others = enumerated(row_behind, text, sampling, marks=False)
        differs += unmarked != ids or any(
            not torch.allclose(one, other, atol=0.01)
            for one, other in zip(laws, others, strict=True)
        )
    assert differs  # guesses that do not see each other would be seen


def test_pickings_are_as_equal_as_the_guesses_that_they_take():
    one = DraftPicking(law_of(GREEDY), 64, 64)
    assert one == DraftPicking(law_of(Sampling(**{**fields(GREEDY), "seed": 9})), 64, 64)
    for name in ("repetition_penalty", "presence_penalty"):
        other = Sampling(**{**fields(GREEDY), name: 1.1})
        assert one != DraftPicking(law_of(other), 64, 64)
    assert DraftPicking(law_of(Sampling()), 64, 64).none_used(CPU) is None


def fields(sampling):
    return {name: getattr(sampling, name) for name in sampling.__struct_fields__}


def test_sessions_that_share_a_recording_or_work_in_turn_keep_their_own_marks():
    draft = tiny_llama(1)
    draft.passes, tapes = taped()

    def proposer():
        return draft_model(width=64, sampling=GREEDY, prompt_length=len(PROMPT))

    how = proposer().picking()
    texts = [[*PROMPT, 9, 2], [*PROMPT[::-1], 60, 61]]
    expected = []
    for text in texts:  # in a session that has seen nothing else
        drafter = Drafter("model", None, GREEDY, "fixed")
        expected.append(drafter.made(text)[0])
    assert expected[0] != expected[1]

    def chained(session, text, masks):
        before = masks.clone()
        found = session.chain(text, COUNT, how=how, told=Told(used=masks)).chain.ids.tolist()
        assert torch.equal(masks, before)
        return found

    masks = [proposer()._penalties.used(text, 64, CPU) for text in texts]
    with draft.passes.kept():
        for text, used, ids in zip(texts, masks, expected, strict=True):
            session = draft.open(90)
            session.prepare_chain([COUNT], how, behind=0, advance=quiet)
            recorded = tapes.recorded
            assert chained(session, text, used) == ids
            del session
        assert tapes.recorded == recorded
        assert len(tapes.made) == 1
        both = [draft.open(90), draft.open(90)]
        for session in both:
            session.prepare_chain([COUNT], how, behind=0, advance=quiet)
        for _ in range(2):
            for session, text, used, ids in zip(both, texts, masks, expected, strict=True):
                assert chained(session, text, used) == ids
    other = draft_model(width=64, sampling=Sampling(presence_penalty=0.6)).picking()
    assert both[0].chain(texts[0], COUNT, how=other, told=Told()) is None
