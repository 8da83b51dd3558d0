"""Every proposer and every rule in the whole loop, on a target that is a table: seeded, so that no
result flickers.

A token of the target depends on the one before it alone. So in one long text the tokens behind each
token are independent draws of its row, and Pearson's test over all cells tells whether they are.
"""

from __future__ import annotations

import itertools
import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import chi2, ncx2

from app.decoding.contracts import Read, Unread
from app.decoding.draft_stop import ConfidenceStop, EntropyStop
from app.decoding.proposers import Surroundings, make_proposer
from app.decoding.proposers.count_trie import CountTrie
from app.decoding.verifiers import make_verifier
from app.library.preflight import check
from app.models.pair import DraftWidths
from app.models.retold import Retold
from app.models.session import Reading
from app.models.vocabulary_bridge import VocabularyBridge
from app.run.identities import violations
from app.run.methods import METHODS
from app.run.metrics import counts, leniency_share
from app.run.record import Repetition
from app.run.rules import RULES
from app.run.settings import Sampling
from rule_formulas import TOKEN_BY_TOKEN
from tongues import letter_tokenizer, write_model
from toys import make_lane, run

VOCABULARY = 4
CELLS = VOCABULARY**2
FREE = VOCABULARY * (VOCABULARY - 1)
TOKENS = 6200
BOUND = chi2.ppf(1 - 1e-4, FREE)
TARGET = torch.tensor(
    [[0.1, 0.7, 0.15, 0.05], [0.05, 0.15, 0.7, 0.1], [0.1, 0.1, 0.2, 0.6], [0.65, 0.1, 0.05, 0.2]]
)
DRAFT = torch.tensor(
    [[0.2, 0.5, 0.2, 0.1], [0.1, 0.2, 0.6, 0.1], [0.25, 0.25, 0.25, 0.25], [0.5, 0.2, 0.1, 0.2]]
)
HEAD_IDS = torch.tensor([0, 1, 3])
"""What a head can guess; it never guesses the token 2."""
OTHER = torch.tensor(
    [
        [0.2, 0.1, 0.1, 0.1, 0.5],
        [0.2, 0.2, 0.2, 0.2, 0.2],
        [0.4, 0.05, 0.4, 0.05, 0.1],
        [0.3, 0.1, 0.3, 0.1, 0.2],
        [0.05, 0.1, 0.6, 0.05, 0.2],
    ]
)
"""A draft of another vocabulary, in its own ids: d, x, b, y, a; the target's are a, b, c, d."""
LOSSLESS = [name for name, rule in RULES.items() if rule.lossless and name != "greedy"]


@cache
def other_letters() -> dict[str, object]:
    """What lies between the target and a draft of another vocabulary."""
    with tempfile.TemporaryDirectory() as home:
        sides = [
            check(write_model(Path(home) / name, letter_tokenizer(name)))
            for name in ("abcd", "dxbyac")
        ]
        between = VocabularyBridge(*sides, target_rows=4, draft_rows=5, differs="they differ.")
        between.retokenised([0], [4])  # reads both sides, while they are there
        assert len(between.shared.target_ids) == 3
    return {"bridge": between, "own_widths": DraftWidths(5, 5, 5)}


def other_text() -> dict[str, object]:
    """The same, with the text in the draft's own ids: one for each lane, which goes on with it."""
    known = other_letters()
    return {**known, "retold": Retold(known["bridge"])}


def earlier_text() -> dict[str, object]:
    """What an earlier run wrote."""
    earlier = CountTrie(4)
    earlier.add([0, 1, 2, 3, 0, 1, 2, 3, 0, 1])
    return {"earlier": earlier}


OPTIONS = {
    "ngram": {"shortest": 1, "longest": 2},
    "cascade": {"shortest": 1, "longest": 2},
    "ngram-else-head": {"shortest": 2, "longest": 2},
    "suffix": {"depth": 4, "offset": 1.0},
    "head-tree": {"nodes": 6, "breadth": 2},
}
"""Options with which a method guesses in a text of four tokens; else its defaults."""
MORE = {"suffix": earlier_text, "tli": other_text, "slem": other_text}
"""What a method has to know of its lane besides."""
DRAFTS = {"head": DRAFT[:, HEAD_IDS], "mtp": DRAFT[:, HEAD_IDS]}
"""Tables by role; whatever else is asked is the draft."""
WAYS = {
    **{method: (method, OPTIONS.get(method, {})) for method in METHODS},
    "own temperature": ("draft-model", {"draft_sampling": "own", "draft_temperature": 2.0}),
    "argmax": ("draft-model", {"draft_sampling": "argmax"}),
}
"""A method and its options, by what it shows: every method there is, so that none goes untried."""


class Tables:
    """A reader whose models are tables of the next token's law by the last one.

    The rows behind a tree are those of its nodes, in order.
    """

    def __init__(self, draft: torch.Tensor) -> None:
        self._tables = {"target": TARGET, **DRAFTS}
        self._draft = draft

    def answer(self, request):
        if isinstance(request, Unread):
            return 1
        assert isinstance(request, Read)
        block = request.block.tensor().tolist() if request.block else []
        ids = [request.text[request.upto - 1], *block]
        table = self._tables.get(request.role, self._draft)
        return Reading(table.log()[ids[len(ids) - request.rows :]])


def proposer_of(way, sampling, *, shared_noise=False, stop=None):
    """The proposer as a lane makes it, with tables for models."""
    method, options = WAYS[way]
    around = Surroundings(
        sampling=sampling,
        end_ids=(),
        prompt_length=2,
        device=torch.device("cpu"),
        draft_device=torch.device("cpu"),
        widths=DraftWidths(VOCABULARY, VOCABULARY, VOCABULARY),
        draft_context=10**6,
        head=SimpleNamespace(ids=HEAD_IDS),
        width=VOCABULARY,
        shared_noise=shared_noise,
        stop=stop,
        **(MORE[method]() if method in MORE else {}),
    )
    return make_proposer(method, options, around)


def written(rule, way="nothing", **asked) -> list[int]:
    return recorded(rule, way, **asked).token_ids


def recorded(rule, way, *, tokens=TOKENS, options=None, stop=None, **sampling) -> Repetition:
    settings = Sampling(**{"temperature": 1.0, "seed": 1, **sampling})
    shared = RULES[rule].same_text
    lane = make_lane(
        [0, 1],
        proposer=proposer_of(way, settings, shared_noise=shared, stop=stop),
        sampling=settings,
        draft_length=3,
        max_new_tokens=tokens,
        context=10**6,
        verifier=make_verifier(rule, settings, options, draft_length=3),
    )
    found = run(lane, Tables(OTHER if MORE.get(way) is other_text else DRAFT))
    assert violations(found) == []
    return found


def statistic(ids: list[int], laws, *, step: int = 1) -> float:
    """Pearson's χ² of the tokens behind each token, or behind each second one."""
    pairs = torch.zeros(VOCABULARY, VOCABULARY)
    for before, after in list(itertools.pairwise(ids))[::step]:
        pairs[before, after] += 1
    expected = pairs.sum(1, keepdim=True) * laws
    return float(((pairs - expected) ** 2 / expected).sum())


def test_so_many_tokens_show_a_law_that_is_off_by_a_twentieth():
    # Σ (p - p')² / p is at least (Σ |p - p'|)² = (2 · 0.05)².
    assert 16 <= CELLS <= 64
    assert ncx2.sf(BOUND, FREE, TOKENS * 0.1**2) > 0.99


@pytest.mark.parametrize("way", WAYS)
def test_every_proposer_keeps_the_targets_law(way):
    found = recorded("exact", way)
    assert statistic(found.token_ids, TARGET) < BOUND
    # Otherwise nothing was tried: guesses are made, some are kept, some are not.
    tally = counts(found)
    assert way == "nothing" or min(tally.accepted, tally.rejected) > 100


@pytest.mark.parametrize("rule", [rule for rule in LOSSLESS if rule != "exact"])
def test_every_lossless_rule_keeps_the_targets_law(rule):
    assert statistic(written(rule, way="draft-model"), TARGET) < BOUND


@pytest.mark.parametrize("rule", [rule for rule in LOSSLESS if rule != "exact"])
def test_every_lossless_rule_keeps_the_targets_law_with_guesses_that_are_certain(rule):
    # The guesses and the rule are each tried with all tokens elsewhere; here it is the two.
    assert statistic(written(rule, way="ngram", tokens=1200), TARGET) < BOUND


@pytest.mark.parametrize("rule", [name for name in LOSSLESS if RULES[name].branches])
def test_trees_follow_the_targets_law_too_and_keep_more_than_one_guess(rule):
    found = recorded(rule, "head-tree")
    assert statistic(found.token_ids, TARGET) < BOUND
    assert max(round_.count("accepted") for round_ in found.rounds) == 3
    assert max(token.tried or 0 for round_ in found.rounds for token in round_.committed) == 2


@pytest.mark.parametrize("stop", [ConfidenceStop(0.25), EntropyStop(0.2, 0.48)])
def test_drafts_that_end_early_keep_the_targets_law(stop):
    found = recorded("exact", "draft-model", stop=stop, tokens=3000)
    ends = [round_.draft_stop for round_ in found.rounds]
    assert 0.1 < sum(map(bool, ends)) / len(ends) < 0.95
    assert statistic(found.token_ids, TARGET) < BOUND


def test_a_head_guesses_what_it_knows_and_nothing_else():
    found = recorded("exact", "head", tokens=300)
    tested = [token for round_ in found.rounds for token in (*round_.committed, *round_.thrown)]
    assert {token.id for token in tested if token.source} == set(HEAD_IDS.tolist())


def first_of_rounds(found: Repetition) -> list[tuple[int, int]]:
    """The first token of every round with a draft, behind the token before it."""
    before, pairs = found.first.id, []
    for round_ in found.rounds:
        if round_.drafted:
            pairs.append((before, round_.committed[0].id))
        before = round_.committed[-1].id
    return pairs


def law_of_first(name: str) -> torch.Tensor:
    """The law of a round's first token by the rule's own formula: [before, token]."""
    formula = TOKEN_BY_TOKEN[name][1]
    law = np.zeros((VOCABULARY, VOCABULARY))
    for before, (p, q) in enumerate(zip(TARGET.numpy(), DRAFT.numpy(), strict=True)):
        for guess in range(VOCABULARY):
            kept = formula.accept(p, q, guess)
            law[before, guess] += q[guess] * kept
            law[before] += q[guess] * (1 - kept) * formula.residual(p, q, guess)
    return torch.tensor(law)


@pytest.mark.parametrize("name", TOKEN_BY_TOKEN)
def test_a_lossy_rule_follows_its_formula_in_the_whole_loop_and_is_seen_to_be_lossy(name):
    found = recorded(name, "draft-model", options=TOKEN_BY_TOKEN[name][0], tokens=3000)
    pairs = first_of_rounds(found)
    chain = [token for pair in pairs for token in pair]
    assert statistic(chain, law_of_first(name), step=2) < BOUND
    assert statistic(chain, TARGET, step=2) > BOUND


def test_fly_is_seen_to_be_lossy():
    options = {"window": 1, "entropy": 0.1}
    assert (
        statistic(written("fly", way="draft-model", options=options, tokens=3000), TARGET) > BOUND
    )


def test_leniency_in_the_whole_loop_is_what_is_expected_of_it():
    found = recorded("lenience", "draft-model", tokens=4000, options={"lenience": 0.5})
    tested = [t for r in found.rounds for t in (*r.committed, *r.thrown) if t.strict_probability]
    share = leniency_share([found])
    assert share > 0.05
    seen = sum(token.kept_by == "leniency" for token in tested) / len(tested)
    assert abs(seen - share) < 4 * (share * (1 - share) / len(tested)) ** 0.5


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_synthetic_acceptance_has_its_length(temperature):
    options = {"rates": "0.9, 0.6, 0.3"}
    found = recorded(
        "synthetic", "draft-model", options=options, tokens=1200, temperature=temperature
    )
    tally = counts(found)
    whole = sum(r.limit == 3 for r in found.rounds)
    assert whole >= tally.rounds - 3
    # The variance of n is at most 9/4: it lies from 0 to 3.
    assert abs(tally.mean_accepted_prefix - 1.8) < 4 * 1.5 / tally.rounds**0.5
    assert leniency_share([found]) > 0.0


@pytest.mark.parametrize(
    ("seed", "penalties"), [(1, {}), (-7, {"repetition_penalty": 1.2, "presence_penalty": 0.4})]
)
def test_coupled_sampling_writes_one_text_whoever_guesses(seed, penalties):
    texts = [written("coupled", way, tokens=120, seed=seed, top_k=3, **penalties) for way in WAYS]
    assert all(text == texts[0] for text in texts)
    assert texts[0] != written("exact", tokens=120, seed=seed, top_k=3, **penalties)
    ways = ("nothing", "draft-model")
    exact = [written("exact", way, tokens=120, seed=seed) for way in ways]
    assert exact[0] != exact[1]
