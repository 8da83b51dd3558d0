"""Lanes decide the same of chains of a target's first layers as of guesses one by one.

`fixed` computes each chain; `taped` records it once, and repeats its operations.
"""

from __future__ import annotations

from functools import partial

import pytest
import torch
from first_layers import (
    CAPACITY,
    PROMPT,
    beside,
    exiting_target,
    passes_of,
    proposer_of,
)
from kept_drafts import NEAR, Counted, quiet, same_drafts, told, watched

from app.run.problems import Cancelled
from app.run.settings import Sampling
from tapes import Tape
from toys import make_lane, run

SAMPLINGS = {
    "greedy": Sampling(),
    "top-k": Sampling(temperature=1.1, top_k=7, seed=5),
    "top-p": Sampling(temperature=0.8, top_p=0.7, seed=6),
}


@pytest.fixture(scope="module")
def target():
    return exiting_target()


def texts(mode, target, sampling, *, length=4, chained=True, tokens=40, end_ids=()):
    """What a lane writes, its drafts as the rule was given them, and its reader."""
    proposer = proposer_of(target, sampling, chained=chained, end_ids=end_ids)
    both, _ = beside(mode, target)
    if chained:
        how = proposer.chains.how
        both.prepare_chain("draft", [length], how, behind=len(PROMPT) - 1, advance=quiet)
    reader = Counted(both)
    return watched(PROMPT, proposer, reader, sampling, length, tokens=tokens, end_ids=end_ids)


def whole(one) -> bool:
    """Whether a round kept all that was guessed."""
    return sum(token.status == "accepted" for token in one.committed) == one.drafted


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
@pytest.mark.parametrize("length", [1, 4])
@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_guesses_laws_and_texts_are_those_of_one_by_one(target, mode, length, sampling):
    alone, drafts, _ = texts("eager", target, sampling, length=length, chained=False)
    found, made, reader = texts(mode, target, sampling, length=length)
    same_drafts(made, drafts)
    assert told(found) == told(alone)
    # From the first round on; the last ones may guess less than a whole chain.
    assert reader.asked >= reader.made >= reader.asked - (0 if mode == "fixed" else length)
    assert reader.made >= len(found.rounds) - length > 3
    kept = [
        one.drafted == sum(t.status == "accepted" for t in one.committed) for one in found.rounds
    ]
    assert not all(kept)
    assert any(kept)


@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_a_draft_ends_at_the_end_of_the_text_as_it_does_one_by_one(target, mode):
    sampling = SAMPLINGS["top-k"]
    plain, *_ = texts("eager", target, sampling, chained=False)
    wanted = {"length": 6, "end_ids": [plain.token_ids[12]]}
    alone, drafts, _ = texts("eager", target, sampling, chained=False, **wanted)
    found, made, reader = texts(mode, target, sampling, **wanted)
    same_drafts(made, drafts)
    assert told(found) == told(alone)
    assert reader.made


class Refuses(Tape):
    """Records passes, but nothing that is longer than one."""

    def record(self, run):
        if isinstance(run, partial):
            return super().record(run)
        raise RuntimeError("too long")


def test_guesses_are_made_one_by_one_where_no_chain_could_be_recorded(target):
    proposer = proposer_of(target)
    both, _ = beside("taped", target, tape=Refuses)
    both.prepare_chain("draft", [4], proposer.chains.how, behind=4, advance=quiet)
    reader, passes = Counted(both), target.passes
    found = run(make_lane(PROMPT, proposer=proposer, max_new_tokens=40), reader)
    alone, *_ = texts("eager", target, Sampling(), chained=False)
    assert told(found) == told(alone)
    assert reader.asked > reader.made == 0
    assert passes.said == "captured graphs; chains one by one: they cannot be captured (too long)"


@pytest.mark.parametrize("mode", ["fixed", "taped"])
def test_a_stop_behind_a_chain_costs_its_guesses_only(target, mode):
    proposer = proposer_of(target)
    both, _ = beside(mode, target)
    both.prepare_chain("draft", [4], proposer.chains.how, behind=4, advance=quiet)
    reader, calls = Counted(both), iter(range(100))

    def pause():
        # The prompt; then a question, a chain and a verdict in each round.
        if next(calls) == 1 + 3 + 3 + 2:
            raise Cancelled

    stopped = run(make_lane(PROMPT, proposer=proposer, max_new_tokens=40), reader, pause=pause)
    assert (reader.made, stopped.abandoned.drafted) == (3, 4)
    alone, *_ = texts("eager", target, Sampling(), chained=False)
    assert stopped.token_ids == alone.token_ids[: len(stopped.token_ids)]
    assert len(stopped.rounds) == 2
    target.passes, _ = passes_of("eager")
    text = [*PROMPT, *alone.token_ids[:20]]
    rows = [
        one.read(text, rows=1).logits for one in (both._sessions["target"], target.open(CAPACITY))
    ]
    assert torch.allclose(*rows, atol=NEAR)
