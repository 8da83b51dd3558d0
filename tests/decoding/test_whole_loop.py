"""Every rule that draws, in the whole loop, on a target that is a table: seeded, so no flicker.

A token of the target depends on the one before it alone. So in one long text the tokens behind each
token are independent draws of its row, and Pearson's test over all cells tells whether they are.
"""

from __future__ import annotations

import itertools

import pytest
import torch
from scipy.stats import chi2, ncx2

from app.decoding.contracts import Read, Unread
from app.decoding.proposers.ngram import Ngram
from app.decoding.verifiers import make_verifier
from app.models.session import Reading
from app.run.identities import violations
from app.run.rules import RULES
from app.run.settings import Sampling
from toys import draft_model, make_lane, run

VOCABULARY = 4
TOKENS = 6500
TARGET = torch.tensor(
    [[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4], [0.25, 0.45, 0.05, 0.25], [0.3, 0.1, 0.5, 0.1]]
)
DRAFT = torch.tensor(
    [[0.2, 0.3, 0.3, 0.2], [0.3, 0.3, 0.3, 0.1], [0.4, 0.2, 0.2, 0.2], [0.1, 0.3, 0.4, 0.2]]
)
LOGITS = {"target": TARGET.log(), "draft": DRAFT.log()}
LOSSLESS = [name for name, rule in RULES.items() if rule.lossless and name != "greedy"]


class Tables:
    """A reader whose models are tables of the next token's law by the last one."""

    def answer(self, request):
        if isinstance(request, Unread):
            return 1
        assert isinstance(request, Read)
        ids = [request.text[request.upto - 1], *(request.block.ids if request.block else [])]
        return Reading(LOGITS[request.role][ids[len(ids) - request.rows :]])


def written(rule, *, proposer=None, tokens=TOKENS, seed=1, **sampling) -> list[int]:
    settings = Sampling(temperature=1.0, seed=seed, **sampling)
    guesser = None
    if proposer == "draft":
        guesser = draft_model(width=4, sampling=settings, shared_noise=rule == "coupled")
    if proposer == "ngram":
        guesser = Ngram(shortest=1, longest=2, end_ids=[])
    lane = make_lane(
        [1],
        proposer=guesser,
        sampling=settings,
        draft_length=3,
        max_new_tokens=tokens,
        context=10**6,
        verifier=make_verifier(rule, settings),
    )
    found = run(lane, Tables())
    assert violations(found) == []
    return lane.text.ids


def statistic(ids: list[int], laws) -> float:
    """Pearson's χ² of the tokens behind each token."""
    pairs = torch.zeros(VOCABULARY, VOCABULARY)
    for before, after in itertools.pairwise(ids):
        pairs[before, after] += 1
    expected = pairs.sum(1, keepdim=True) * laws
    return float(((pairs - expected) ** 2 / expected).sum())


def test_so_many_tokens_show_a_law_that_is_off_by_a_twentieth():
    # Σ (p - p')² / p is at least (Σ |p - p'|)² = (2 · 0.05)².
    free = VOCABULARY * (VOCABULARY - 1)
    assert ncx2.sf(chi2.ppf(1 - 1e-4, free), free, TOKENS * 0.1**2) > 0.99


@pytest.mark.parametrize("proposer", ["draft", "ngram"])
@pytest.mark.parametrize("rule", LOSSLESS)
def test_the_whole_loop_follows_the_targets_law(rule, proposer):
    free = VOCABULARY * (VOCABULARY - 1)
    assert statistic(written(rule, proposer=proposer), TARGET) < chi2.ppf(1 - 1e-4, free)


@pytest.mark.parametrize("seed", [1, -7])
@pytest.mark.parametrize("penalties", [{}, {"repetition_penalty": 1.2, "presence_penalty": 0.4}])
def test_coupled_sampling_writes_one_text_whoever_guesses(seed, penalties):
    texts = [
        written("coupled", proposer=proposer, tokens=200, seed=seed, top_k=3, **penalties)
        for proposer in (None, "ngram", "draft")
    ]
    assert texts[0] == texts[1] == texts[2]
    assert texts[0] != written("exact", tokens=200, seed=seed, top_k=3, **penalties)
    exact = [written("exact", proposer=p, tokens=200, seed=seed) for p in (None, "draft")]
    assert exact[0] != exact[1]
