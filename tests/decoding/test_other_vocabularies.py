"""Drafts of another vocabulary, by both methods: by enumeration, in the whole loop, and greedy."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import partial

import pytest
import torch
from scipy.stats import chi2

from app.decoding.contracts import Read, Unread
from app.decoding.proposers.draft_model import DraftModel, DraftSetup
from app.decoding.proposers.intersected import Intersected
from app.decoding.proposers.retokenised import Retokenised
from app.decoding.sampling import warp
from app.decoding.verifiers import make_verifier
from app.library.preflight import check
from app.models.block import Block
from app.models.pair import DraftWidths
from app.models.retold import Retold
from app.models.session import Reading
from app.models.vocabulary_bridge import VocabularyBridge
from app.run.identities import violations
from app.run.metrics import counts
from app.run.rules import RULES
from app.run.settings import Sampling
from oracles import GAMMA, VOCABULARY, law_of_rounds, law_of_text, random_table, total_variation
from tongues import bridge, letter_tokenizer, letters, pieces, write_model
from toys import ScriptedLM, make_lane, run, sessions, tiny_llama

CPU = torch.device("cpu")
METHODS = ["tli", "slem"]
LOSSLESS = [name for name, rule in RULES.items() if rule.lossless and name != "greedy"]
TEXT = "the cat and the fat rat; a café, 日本語 and 🙂 too: 12 + 34 = 46!\n\n\tthe end"


def intersected(between, *, width, sampling=Sampling(), context=10**6, prompt_length=1, **more):
    setup = DraftSetup(
        sampling=sampling,
        widths=DraftWidths(width, 0, 0),
        context=context,
        device=more.pop("device", CPU),
        prompt_length=prompt_length,
        end_ids=more.pop("end_ids", ()),
        **more,
    )
    return Intersected(setup, between, Retold(between))


def retokenised(between, *, width, sampling=Sampling(), context=10**6, prompt_length=1, room=None):
    def writer(length):
        setup = DraftSetup(
            sampling=sampling,
            widths=DraftWidths(width, width, width),
            context=context,
            device=CPU,
            prompt_length=length,
            end_ids=between.draft_ends,
            room=room,
        )
        return DraftModel(setup)

    return Retokenised(
        writer, bridge=between, retold=Retold(between), device=CPU, prompt_length=prompt_length
    )


def proposer(method, between, *, widths, sampling, **changes):
    make = intersected if method == "tli" else retokenised
    width = widths[0] if method == "tli" else widths[1]
    noise = {"shared_noise": changes.pop("shared_noise", False)} if method == "tli" else {}
    changes.pop("shared_noise", None)
    return make(between, width=width, sampling=sampling, **changes, **noise)


@pytest.fixture(scope="module")
def alphabets(tmp_path_factory):
    """Four letters, and five of which three are the same under other ids; the draft can read the
    fourth, but has no row for it.
    """
    home = tmp_path_factory.mktemp("alphabets")
    folders = [
        write_model(home / name, letter_tokenizer(name), seed=3) for name in ("abcd", "dxbyac")
    ]
    sides = [check(folder) for folder in folders]
    return VocabularyBridge(*sides, target_rows=4, draft_rows=5, differs="they differ.")


SHARED = {0: 4, 1: 2, 3: 0}
"""The target's a, b, d, and the draft's."""


def logits_of(seed: int, width: int) -> dict[tuple[int, ...], torch.Tensor]:
    """The draft's logits behind every prefix of the target's ids."""
    generator = torch.Generator().manual_seed(seed)
    prefixes = [p for n in range(GAMMA) for p in itertools.product(range(VOCABULARY), repeat=n)]
    return {prefix: 2 * torch.randn(width, generator=generator) for prefix in prefixes}


def law_of_guesses(between, logits: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """What the proposer draws from, [4]."""
    scores = intersected(between, width=4, sampling=sampling).scores(logits, [0], Block())
    return warp(scores[None], sampling)[0].double()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rule", ["exact", "block"])
def test_the_intersection_keeps_the_targets_law_exactly(alphabets, rule, seed):
    target, sampling = random_table(seed, zeros=seed == 2), Sampling(temperature=1.0)
    drawn, raw = {}, {}
    for prefix, logits in logits_of(seed, 5).items():
        own = torch.softmax(logits.double(), dim=-1)
        told = torch.zeros(4, dtype=torch.float64)
        told[list(SHARED)] = own[list(SHARED.values())]
        raw[prefix] = told
        drawn[prefix] = told / told.sum()
        law = law_of_guesses(alphabets, logits, sampling)
        assert torch.allclose(law, drawn[prefix], atol=1e-6)
        assert law[2] == 0.0  # the target's c, which the draft does not know
    verifier = make_verifier(rule, sampling)
    rounds = partial(law_of_rounds, verifier, target, drawn)
    assert total_variation(rounds(), law_of_text(target)) < 1e-12
    # Had the draft's own probabilities been told, as they are before they are renormalised:
    assert total_variation(rounds(raw), law_of_text(target)) > 1e-3


@pytest.mark.parametrize("rule", ["exact", "block"])
def test_what_is_cut_anew_keeps_the_targets_law_whatever_the_draft_drew(alphabets, rule):
    # The draft writes two of its letters by chance; each text makes certain guesses.
    target, verifier = random_table(5), make_verifier(rule, Sampling(temperature=1.0))
    law: Counter[tuple[int, ...]] = Counter()
    written = torch.softmax(logits_of(9, 5)[()].double(), dim=-1)
    for text in itertools.product(range(5), repeat=GAMMA):
        guesses = alphabets.retokenised([0], text)
        known = [own for own in text if own in SHARED.values()]
        if len(known) < GAMMA:
            assert guesses == []  # the target has no token for x and y
            rounds = law_of_text(target)
        else:
            assert [SHARED[guess] for guess in guesses] == known
            rounds = law_of_rounds(verifier, target, lambda prefix, g=guesses: g[len(prefix)])
        for outcome, chance in rounds.items():
            law[outcome] += float(written[list(text)].prod()) * chance
    assert total_variation(law_of_text(target), law) < 1e-12


TABLES = {
    "target": torch.tensor(
        [[0.1, 0.7, 0.15, 0.05], [0.05, 0.15, 0.7, 0.1], [0.3, 0.4, 0.2, 0.1], [0.6, 0.1, 0.1, 0.2]]
    ),
    "draft": torch.tensor(
        [
            [0.2, 0.1, 0.1, 0.1, 0.5],
            [0.2, 0.2, 0.2, 0.2, 0.2],
            [0.4, 0.05, 0.4, 0.05, 0.1],
            [0.3, 0.1, 0.3, 0.1, 0.2],
            [0.05, 0.1, 0.6, 0.05, 0.2],
        ]
    ),
}


class Tables:
    """A reader whose models are tables of the next token by the last one, each in its own ids."""

    def answer(self, request):
        if isinstance(request, Unread):
            return 1
        assert isinstance(request, Read)
        ids = [request.text[request.upto - 1], *(request.block.ids if request.block else [])]
        return Reading(TABLES[request.role].log()[ids[len(ids) - request.rows :]])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rule", LOSSLESS)
def test_the_whole_loop_follows_the_targets_law(alphabets, method, rule):
    # So many show a law that is off by a twentieth (test_whole_loop.py); one rule has to, and half
    # as many do where guesses are certain.
    tokens = (6500 if method == "tli" else 3250) if rule == "exact" else 1000
    sampling = Sampling(temperature=1.0, seed=1)
    shared = rule == "coupled"
    guesser = proposer(method, alphabets, widths=(4, 5), sampling=sampling, shared_noise=shared)
    verifier = make_verifier(rule, sampling)
    found = run(
        make_lane(
            [1],
            proposer=guesser,
            sampling=sampling,
            draft_length=3,
            max_new_tokens=tokens,
            context=10**6,
            verifier=verifier,
        ),
        Tables(),
    )
    assert violations(found) == []
    assert counts(found).accepted > 0.1 * tokens
    seen = torch.zeros(4, 4)
    for before, after in itertools.pairwise(found.token_ids):
        seen[before, after] += 1
    expected = seen.sum(1, keepdim=True) * TABLES["target"]
    assert float(((seen - expected) ** 2 / expected).sum()) < chi2.ppf(1 - 1e-4, 12)


def test_a_seed_gives_one_text_by_the_coupled_rule_whoever_guesses(alphabets):
    sampling = Sampling(temperature=1.0, seed=4)
    texts = []
    for method in (None, *METHODS):
        guesser = method and proposer(
            method, alphabets, widths=(4, 5), sampling=sampling, shared_noise=True
        )
        verifier = make_verifier("coupled", sampling)
        lane = make_lane(
            [1], proposer=guesser, sampling=sampling, max_new_tokens=150, verifier=verifier
        )
        texts.append(run(lane, Tables()).token_ids)
    assert texts[0] == texts[1] == texts[2]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    home = tmp_path_factory.mktemp("kinds")
    return {
        "letters": write_model(home / "letters", letters()),
        "pieces": write_model(home / "pieces", pieces()),
    }


def random_pair(kinds, target, draft):
    """Two random models, and what lies between their vocabularies. Where a token is shared, the
    draft has the target's rows for it and thinks like it, so that it is right now and then."""
    between = bridge(kinds[target], kinds[draft])
    sizes = [check(kinds[one]).vocabulary for one in (target, draft)]
    models = [tiny_llama(2, vocabulary=size) for size in sizes]
    inner, other = models[1].inner, models[0].inner
    inner.model.layers.load_state_dict(other.model.layers.state_dict())
    mine, its = (torch.tensor(x) for x in (between.shared.draft_ids, between.shared.target_ids))
    with torch.no_grad():
        inner.model.embed_tokens.weight[mine] = other.model.embed_tokens.weight[its]
        inner.lm_head.weight[mine] = other.lm_head.weight[its]
    return models, between, sizes


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("target", "draft"), [("letters", "pieces"), ("pieces", "letters")])
@pytest.mark.parametrize("penalties", [{}, {"repetition_penalty": 1.3, "presence_penalty": 0.5}])
def test_greedy_texts_are_the_baselines_at_every_draft_length(
    kinds, target, draft, method, penalties
):
    models, between, sizes = random_pair(kinds, target, draft)
    sampling = Sampling(**penalties)
    prompt = {"letters": letters(), "pieces": pieces()}[target].encode("the cat and the rat")
    asked = {"sampling": sampling, "max_new_tokens": 16}
    plain = run(make_lane(prompt, **asked), sessions(models[0]))
    accepted = 0
    for gamma in range(1, 9):
        guesser = proposer(
            method, between, widths=sizes, sampling=sampling, prompt_length=len(prompt)
        )
        lane = make_lane(prompt, proposer=guesser, draft_length=gamma, **asked)
        found = run(lane, sessions(*models))
        assert found.token_ids == plain.token_ids
        assert violations(found) == []
        assert max(round_.drafted for round_ in found.rounds) <= gamma
        accepted += counts(found).accepted
    assert accepted > 0 or method == "slem"


def knows(text: bytes, tokenizer, between, side: str):
    """A model that writes this text, in its own ids, wherever it has read the start of it."""
    spelling = getattr(between, side).spelling
    whole = tokenizer.encode(text.decode(), add_special_tokens=False)
    ends = list(itertools.accumulate(len(spelling.texts[id_]) for id_ in whole))
    extra = ends[-1] - len(text)
    starts = dict(
        zip([0, *(end - extra for end in ends)], [*whole, tokenizer.eos_token_id], strict=True)
    )

    def law(prefix):
        logits = [0.0] * (len(tokenizer) + 3)
        special = between._target.vocabulary.special if side == "_target" else ()
        special = special or between._draft.vocabulary.special
        said = spelling.spelled(id_ for id_ in prefix if id_ not in special)
        said = said.removeprefix(b" " if extra else b"")
        right = starts.get(len(said)) if text.startswith(said) else None
        logits[tokenizer.eos_token_id if right is None else right] = 12.0
        return logits

    return ScriptedLM(law)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("target", "draft"), [("letters", "pieces"), ("pieces", "letters")])
def test_a_draft_that_knows_the_text_guesses_it_and_its_end(kinds, target, draft, method):
    # Characters of several tokens, spaces in front, runs of spaces, and an end that is guessed.
    both = {"letters": letters(), "pieces": pieces()}
    between = bridge(kinds[target], kinds[draft])
    ids = both[target].encode(TEXT, add_special_tokens=False)
    models = [
        knows(TEXT.encode(), both[one], between, side)
        for one, side in ((target, "_target"), (draft, "_draft"))
    ]
    end = both[target].eos_token_id
    sizes = [len(both[one]) + 3 for one in (target, draft)]
    guesser = proposer(method, between, widths=sizes, sampling=Sampling())
    lane = make_lane(
        ids[:1],
        proposer=guesser,
        draft_length=12,
        max_new_tokens=200,
        end_ids=[end],
        decode_ids=both[target].decode,
    )
    found = run(lane, sessions(*models))
    assert [*ids[:1], *found.token_ids] == [*ids, end]
    assert found.finish == "end of text"
    assert found.rounds[-1].committed[-1].status == "accepted"
    # Token by token it is right where both cut the text alike; cut anew, but where it broke off.
    tally = counts(found)
    assert tally.accepted > 10 if method == "tli" else tally.acceptance_rate > 0.6


@pytest.mark.parametrize("method", METHODS)
def test_a_draft_of_little_context_leaves_the_target_alone(kinds, method):
    models, between, sizes = random_pair(kinds, "letters", "pieces")
    prompt = letters().encode("the cat and the rat")
    asked = {"max_new_tokens": 30}
    plain = run(make_lane(prompt, **asked), sessions(models[0]))
    guesser = proposer(
        method,
        between,
        widths=sizes,
        sampling=Sampling(),
        context=16,
        prompt_length=len(prompt),
    )
    found = run(make_lane(prompt, proposer=guesser, **asked), sessions(*models, capacity=64))
    assert found.token_ids == plain.token_ids
    last = found.rounds[-2]
    assert (last.drafted, last.limit, last.limited_by) == (0, 0, "draft's context")
    assert found.rounds[0].drafted > 0


def test_nothing_of_the_intersection_asks_the_device_for_a_value(kinds):
    # Tensors on the device `meta` have none: the guesses come home with the verdict alone.
    between, meta = bridge(kinds["letters"], kinds["pieces"]), torch.device("meta")
    sampling = Sampling(temperature=0.8, top_k=40, top_p=0.9, repetition_penalty=1.3)
    guesser = intersected(between, width=len(letters()) + 3, sampling=sampling, device=meta)
    text, fed = letters().encode("the cat"), []
    for _ in range(3):
        asking, answer = guesser.propose(text, limit=2, round_=0), None
        while True:
            try:
                request = asking.send(answer)
            except StopIteration as done:
                draft = done.value
                break
            if fed:  # what a session compares with the text: the draft's own ids of those guesses
                assert fed.pop().ids == list(between.shared.draft_ids[-2:])
            answer = len(request.text)
            if isinstance(request, Read):
                block, answer = (
                    request.block,
                    Reading(torch.empty(1, len(pieces()) + 3, device=meta)),
                )
        assert len(draft) == 2
        assert draft.law.device == meta
        draft.block.settle(between.shared.target_ids[-2:])
        fed = [block]
        text = [*text, *draft.block.ids]
