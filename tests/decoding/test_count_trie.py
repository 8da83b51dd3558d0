"""The counts of suffix decoding beside a recount by the definition, and beside its inventors'."""

import json
import random
import tracemalloc
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.decoding.proposers.count_trie import Continuation, CountTrie, GrowingText

CASES = json.loads((Path(__file__).parent / "fixtures" / "suffix_cases.json").read_text())
"""Made by arctic-inference 0.3.0 (SuffixDecodingCache.speculate) of texts of repeated phrases: each
of `earlier` is a request that has ended, `text` is the prompt of the one at hand. Only cases in
which no two tokens follow equally often, as what is taken then is nobody's definition.
"""


def trie_of(texts, depth):
    trie = CountTrie(depth)
    for text in texts:
        trie.add(text)
    return trie


def growing(text, depth):
    """A trie of one text, and the text in it."""
    grown = GrowingText(trie := CountTrie(depth))
    for token in text:
        grown.append(token)
    return trie, grown


def nodes_of(trie):
    """Every node but the root, one by one."""
    pending, found = [trie.root], 0
    while pending:
        children = pending.pop().children.values()
        found += len(children)
        pending += children
    return found


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=5),
    st.integers(2, 6),
)
def test_the_number_of_nodes_is_that_of_a_recount_also_once_texts_are_taken_off(texts, depth):
    trie = trie_of(texts, depth)
    assert trie.nodes == nodes_of(trie)
    while texts:
        trie.remove(texts.pop(0))
        assert trie.nodes == nodes_of(trie)


@pytest.mark.parametrize("copies", [1, 2])
def test_no_node_takes_more_memory_than_is_told(copies):
    drawn = random.Random(3)
    texts = [tuple(drawn.randrange(50_000) for _ in range(400)) for _ in range(10)]
    tracemalloc.start()
    trie = trie_of(texts * copies, 24)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.6 * trie.byte_count < taken < 1.1 * trie.byte_count


def times(texts, run):
    """How often a run stands in some texts."""
    starts = ((text, start) for text in texts for start in range(len(text) - len(run) + 1))
    return sum(list(text[start : start + len(run)]) == run for text, start in starts)


def recounted(texts, context, *, depth, limit, factor, offset, least):
    """The best continuation by the definition; of equal tokens the one that followed last."""
    best, score, matched = [], Fraction(0), 0
    for size in range(1, min(depth, len(context) + 1)):
        run = list(context[-size:])
        whole = times(texts, run)
        if not whole:
            break
        found, path = [], Fraction(0)
        while len(found) < min(limit, int(size * factor + offset + 1e-6)) and len(run) < depth:
            followed, last = Counter(), {}
            for number, text in enumerate(texts):
                for start in range(len(text) - len(run)):
                    if list(text[start : start + len(run)]) == run:
                        token = text[start + len(run)]
                        followed[token] += 1
                        last[token] = (number, start)
            if not followed:
                break
            token = max(followed, key=lambda one: (followed[one], last[one]))
            if followed[token] / whole < least:
                break
            run.append(token)
            found.append(token)
            path += Fraction(followed[token], whole)
        if path >= score:
            best, score, matched = found, path, size
    return Continuation(tuple(best), float(score), matched if best else 0)


def rounded(found):
    """A continuation to be compared; where nothing is guessed, behind what is all the same."""
    return found.tokens, round(found.score, 4), found.matched if found.tokens else 0


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_guesses_and_scores_are_those_of_the_inventors_program(case):
    depth = case["depth"]
    asked = {name: case[name] for name in ("limit", "factor", "offset", "least")}
    own, text = growing(case["text"], depth)
    earlier = trie_of(case["earlier"], depth)
    here = own.best_of(text.ends(), **asked)
    there = earlier.best_of(earlier.ends_of(case["text"]), **asked)
    found = here if here.score >= there.score else there
    assert rounded(found) == (tuple(case["tokens"]), round(case["score"], 4), case["matched"])


def test_the_inventors_cases_ask_both_tries_and_all_lengths():
    tries = {bool(case["earlier"]) for case in CASES if case["tokens"]}
    assert tries == {True, False}
    assert {len(case["tokens"]) for case in CASES} >= {1, 2, 3, 4, 8}


@pytest.mark.parametrize("seed", range(40))
def test_a_growing_text_guesses_what_a_recount_does(seed):
    drawn = random.Random(seed)
    depth, letters = drawn.choice([1, 2, 3, 4, 6]), drawn.choice([2, 3, 5])
    asked = {
        "limit": drawn.choice([0, 1, 3, 8]),
        "factor": drawn.choice([0.5, 1.0, 2.0]),
        "offset": drawn.choice([-1.0, 0.0, 1.0]),
        "least": drawn.choice([0.0, 0.1, 0.4]),
    }
    written = [drawn.randrange(letters) for _ in range(30)]
    grown = GrowingText(trie := CountTrie(depth))
    for end, token in enumerate(written, 1):
        grown.append(token)
        found = trie.best_of(grown.ends(), **asked)
        assert rounded(found) == rounded(
            recounted([written[:end]], written[:end], depth=depth, **asked)
        )


@pytest.mark.parametrize("seed", range(40))
def test_earlier_texts_guess_what_a_recount_does_also_when_the_oldest_went(seed):
    drawn = random.Random(seed)
    depth, letters = drawn.choice([2, 3, 4, 6]), drawn.choice([2, 3, 5])
    texts = [[drawn.randrange(letters) for _ in range(drawn.randrange(1, 30))] for _ in range(5)]
    trie = trie_of(texts, depth)
    while texts:
        context = [drawn.randrange(letters) for _ in range(20)]
        asked = {"limit": 6, "factor": 2.0, "offset": 0.0, "least": 0.1}
        found = trie.best_of(trie.ends_of(context), **asked)
        assert rounded(found) == rounded(recounted(texts, context, depth=depth, **asked))
        trie.remove(texts.pop(0))
    assert trie.root.children == {}


LETTERS = st.lists(st.integers(0, 2), max_size=25)


@given(st.lists(LETTERS, max_size=4), LETTERS, st.integers(1, 6))
@settings(deadline=None)
def test_every_run_is_counted_as_often_as_it_stands_there(texts, last, depth):
    trie = trie_of([*texts, last], depth)
    for text in (*texts, last):
        for start in range(len(text)):
            for end in range(start + 1, min(start + depth, len(text)) + 1):
                spot = trie.find(text[start:end])
                assert spot is not None
                assert spot.node.count == times([*texts, last], text[start:end])
    assert trie.find([7]) is None


@given(LETTERS, LETTERS, LETTERS, st.integers(2, 6))
@settings(deadline=None)
def test_a_text_that_was_removed_leaves_nothing(gone, one, other, depth):
    trie = trie_of([gone, one, other], depth)
    trie.remove(gone)
    never = trie_of([one, other], depth)
    for size in range(1, depth):
        for start in range(len(gone)):
            run = gone[start : start + size]
            told = [known.find(run) for known in (trie, never)]
            counts = [spot and spot.node.count for spot in told]
            assert counts[0] == counts[1]
            if told[0]:
                found = [
                    known.going_on(spot, limit=5, least=0.0)
                    for known, spot in zip((trie, never), told, strict=True)
                ]
                assert found[0] == found[1]


def test_equal_scores_go_to_the_longer_match():
    # Behind 1, of three, stands twice 2; behind 0 1, of one, 5 and 6, each for certain.
    trie = trie_of([[7, 1, 2], [8, 1, 2], [0, 1, 5, 6]], 8)
    asked = {"limit": 4, "factor": 0.0, "least": 0.0}
    assert trie.best_of(trie.ends_of([0, 1]), offset=1.0, **asked).tokens == (5,)
    assert trie.best_of(trie.ends_of([9, 1]), offset=1.0, **asked).tokens == (2,)
    even = trie_of([[0, 1, 2], [0, 1, 2]], 8)
    found = even.best_of(even.ends_of([0, 1]), offset=1.0, **asked)
    assert (found.tokens, found.score, found.matched) == ((2,), 1.0, 2)


def nodes_below(node):
    return sum(1 + nodes_below(child) for child in node.children.values())


def test_what_is_not_repeated_takes_one_node_a_token_however_deep():
    assert nodes_below(trie_of([range(3000)], 24).root) == 3000
    drawn = random.Random(1)
    prose = [int(drawn.paretovariate(0.6)) % 5000 for _ in range(4000)]
    assert nodes_below(trie_of([prose], 24).root) < 4 * len(prose)
