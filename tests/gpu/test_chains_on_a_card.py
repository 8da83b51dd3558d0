"""Chains of guesses that a card repeats as one graph are those that are asked for one by one."""

import pytest
import torch

from app.decoding.clock import clock_for
from app.decoding.contracts import Chain
from app.decoding.drivers import Sessions, run_lane
from app.decoding.loop import decode
from app.decoding.proposers.draft_head import DraftHead, HeadSetup
from app.decoding.proposers.draft_model import DraftModel, DraftSetup
from app.models.early_exit import EarlyExit
from app.models.fixed.choice import choose_passes
from app.models.fixed.recorder import watch_waits
from app.models.pair import DraftWidths
from app.run.identities import violations
from app.run.metrics import counts
from app.run.settings import Sampling
from toys import make_lane, run, tiny_head, tiny_llama, wrapped

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no graphics card for torch"),
]

CARD = torch.device("cuda")
SAMPLINGS = [
    Sampling(),
    Sampling(temperature=0.8, top_p=0.9, seed=3),
    Sampling(temperature=1.1, top_k=9, min_p=0.05, seed=4),
    Sampling(repetition_penalty=1.2, presence_penalty=0.3),
    Sampling(temperature=0.8, top_p=0.9, repetition_penalty=1.2, seed=5),
]


class Counted:
    """A reader that counts the chains which were made."""

    def __init__(self, reader) -> None:
        self._reader = reader
        self.made = 0

    def answer(self, request):
        found = self._reader.answer(request)
        self.made += isinstance(request, Chain) and found is not None
        return found


def on_card(seed=1, *, noise=0.0):
    model = wrapped(tiny_llama(seed, noise=noise).inner.to(CARD))
    choose_passes(model, "auto")
    assert model.passes.mode == "graphs", model.passes.reason
    return model


def drafting(kind, sampling, *, chained, length=4):
    """A proposer, and sessions whose passes and chains are recorded; both models are in fp32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    target = on_card(1)
    if kind in ("model", "early-exit"):
        setup = DraftSetup(
            sampling=sampling,
            widths=DraftWidths(64, 64, 64),
            context=256,
            device=CARD,
            prompt_length=3,
            end_ids=(),
            chained=chained,
        )
        proposer, role = DraftModel(setup), "draft"
        session = target.open(256)
        exits = kind == "early-exit"
        ahead = EarlyExit(target).open(session, 256) if exits else on_card(1, noise=0.01).open(256)
        both = Sessions({"target": session, "draft": ahead})
    else:
        head, role = tiny_head(target, hears=0.3), "head"
        proposer = DraftHead(
            HeadSetup(sampling=sampling, ids=head.ids, width=64, prompt_length=3, end_ids=()),
            chained=chained,
        )
        session = head.open_target(256)
        both = Sessions({"target": session, "head": head.open(session, 256)})
    quiet = {"behind": 0, "advance": lambda done, total: None}
    both.prepare("target", length + 1, **quiet)
    both.prepare("draft", 2, **quiet)
    both.prepare_chain(role, [length], proposer.picking(), **quiet)
    return proposer, Counted(both)


def lane(proposer, sampling, tokens=60):
    return make_lane(
        [3, 1, 4],
        proposer=proposer,
        sampling=sampling,
        draft_length=4,
        max_new_tokens=tokens,
        clock=clock_for(CARD),
        device="cuda",
    )


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("kind", ["model", "early-exit", "head"])
def test_texts_and_counts_are_those_of_one_by_one(kind, sampling):
    found = []
    for chained in (False, True):
        proposer, reader = drafting(kind, sampling, chained=chained)
        found.append(run(lane(proposer, sampling), reader))
        assert violations(found[-1]) == []
        assert (reader.made > 8) == chained
    alone, at_once = found
    assert at_once.token_ids == alone.token_ids
    assert counts(at_once) == counts(alone)
    for one in at_once.rounds[1:]:
        assert one.phases.draft >= one.phases.draft_calls > 0 or not one.drafted


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("kind", ["model", "early-exit", "head"])
def test_nothing_waits_for_the_card_while_a_chain_is_made(kind, sampling):
    proposer, reader = drafting(kind, sampling, chained=True)
    answer = reader.answer

    def strict(request):
        watch_waits("error" if isinstance(request, Chain) else "default")
        try:
            return answer(request)
        finally:
            watch_waits("default")

    reader.answer = strict
    for _ in run_lane(decode(lane(proposer, sampling)), reader, lambda: None):
        pass
    assert reader.made > 8


def test_a_chain_is_no_slower_than_its_guesses_one_by_one():
    clock, spent = clock_for(CARD), []
    for chained in (False, True):
        proposer, reader = drafting("model", SAMPLINGS[1], chained=chained)
        rounds = run(lane(proposer, SAMPLINGS[1], tokens=200), reader).rounds[2:]
        clock.wait()
        full = [one.phases.draft for one in rounds if one.drafted == 4]
        spent.append(sorted(full)[len(full) // 2])
    assert spent[1] < spent[0]
