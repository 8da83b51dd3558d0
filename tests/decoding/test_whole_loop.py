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
from app.decoding.draft_stop import ConfidenceStop, EntropyStop
from app.decoding.proposers.head_tree import HeadTree
from app.decoding.proposers.ngram import Ngram
from app.decoding.verifiers import make_verifier
from app.models.session import Reading
from app.run.identities import violations
from app.run.metrics import counts, leniency_share
from app.run.record import Repetition
from app.run.rules import RULES
from app.run.settings import Sampling
from toys import draft_model, make_lane, run

VOCABULARY = 4
TOKENS = 6500
TARGET = torch.tensor(
    [[0.1, 0.7, 0.15, 0.05], [0.05, 0.15, 0.7, 0.1], [0.1, 0.1, 0.2, 0.6], [0.65, 0.1, 0.05, 0.2]]
)
DRAFT = torch.tensor(
    [[0.2, 0.5, 0.2, 0.1], [0.1, 0.2, 0.6, 0.1], [0.25, 0.25, 0.25, 0.25], [0.5, 0.2, 0.1, 0.2]]
)
LOGITS = {"target": TARGET.log(), "draft": DRAFT.log(), "head": DRAFT.log()}
LOSSLESS = [name for name, rule in RULES.items() if rule.lossless and name != "greedy"]


class Tables:
    """A reader whose models are tables of the next token's law by the last one."""

    def answer(self, request):
        if isinstance(request, Unread):
            return 1
        assert isinstance(request, Read)
        ids = [request.text[request.upto - 1], *(request.block.ids if request.block else [])]
        return Reading(LOGITS[request.role][ids[len(ids) - request.rows :]])


def written(rule, **asked) -> list[int]:
    return recorded(rule, asked.pop("proposer", None), **asked).token_ids


def recorded(rule, proposer, *, tokens=TOKENS, options=None, stop=None, **sampling) -> Repetition:
    settings = Sampling(**{"temperature": 1.0, "seed": 1, **sampling})
    guesser = None
    if proposer == "draft":
        guesser = draft_model(width=4, sampling=settings, shared_noise=rule == "coupled", stop=stop)
    if proposer == "tree":
        ids = torch.arange(VOCABULARY)
        guesser = HeadTree(
            sampling=settings,
            ids=ids,
            width=VOCABULARY,
            prompt_length=1,
            end_ids=(),
            nodes=6,
            breadth=2,
        )
    if proposer == "ngram":
        guesser = Ngram(shortest=1, longest=2, end_ids=[])
    lane = make_lane(
        [1],
        proposer=guesser,
        sampling=settings,
        draft_length=3,
        max_new_tokens=tokens,
        context=10**6,
        verifier=make_verifier(rule, settings, options),
    )
    found = run(lane, Tables())
    assert violations(found) == []
    return found


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
    # An n-gram's guesses are certain, which is a round a token or two: fewer tokens do.
    ids = written(rule, proposer=proposer, tokens=TOKENS if proposer == "draft" else TOKENS // 2)
    free = VOCABULARY * (VOCABULARY - 1)
    assert statistic(ids, TARGET) < chi2.ppf(1 - 1e-4, free)


@pytest.mark.parametrize("rule", [name for name in LOSSLESS if RULES[name].branches])
def test_trees_follow_the_targets_law_too_and_keep_more_than_one_guess(rule):
    found = recorded(rule, "tree", tokens=TOKENS)
    free = VOCABULARY * (VOCABULARY - 1)
    assert statistic(found.token_ids, TARGET) < chi2.ppf(1 - 1e-4, free)
    assert max(round_.count("accepted") for round_ in found.rounds) == 3
    assert max(token.tried or 0 for round_ in found.rounds for token in round_.committed) == 2


@pytest.mark.parametrize("stop", [ConfidenceStop(0.25), EntropyStop(0.2, 0.48)])
def test_drafts_that_end_early_keep_the_targets_law(stop):
    found = recorded("exact", "draft", stop=stop, tokens=3000)
    ends = [round_.draft_stop for round_ in found.rounds]
    assert 0.1 < sum(map(bool, ends)) / len(ends) < 0.95
    free = VOCABULARY * (VOCABULARY - 1)
    assert statistic(found.token_ids, TARGET) < chi2.ppf(1 - 1e-4, free)


def test_leniency_in_the_whole_loop_is_what_is_expected_of_it():
    found = recorded("lenience", "draft", options={"lenience": 0.5})
    tested = [t for r in found.rounds for t in (*r.committed, *r.thrown) if t.strict_probability]
    share = leniency_share([found])
    assert share > 0.05
    seen = sum(token.kept_by == "leniency" for token in tested) / len(tested)
    assert abs(seen - share) < 4 * (share * (1 - share) / len(tested)) ** 0.5


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_synthetic_acceptance_has_its_length(temperature):
    options = {"rates": "0.9, 0.6, 0.3"}
    found = recorded("synthetic", "draft", options=options, tokens=2000, temperature=temperature)
    tally = counts(found)
    whole = sum(r.limit == 3 for r in found.rounds)
    assert whole >= tally.rounds - 3
    # The variance of n is at most 9/4: it lies from 0 to 3.
    assert abs(tally.mean_accepted_prefix - 1.8) < 4 * 1.5 / tally.rounds**0.5
    assert leniency_share([found]) > 0.0


@pytest.mark.parametrize("seed", [1, -7])
@pytest.mark.parametrize("penalties", [{}, {"repetition_penalty": 1.2, "presence_penalty": 0.4}])
def test_coupled_sampling_writes_one_text_whoever_guesses(seed, penalties):
    texts = [
        written("coupled", proposer=proposer, tokens=200, seed=seed, top_k=3, **penalties)
        for proposer in (None, "ngram", "draft", "tree")
    ]
    assert texts[0] == texts[1] == texts[2] == texts[3]
    assert texts[0] != written("exact", tokens=200, seed=seed, top_k=3, **penalties)
    exact = [written("exact", proposer=p, tokens=200, seed=seed) for p in (None, "draft")]
    assert exact[0] != exact[1]
