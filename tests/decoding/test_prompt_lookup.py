"""The n-gram proposer beside its definition, and beside the prompt lookup of transformers."""

import random
from collections import Counter

import pytest
import torch
from transformers.generation import candidate_generator, utils

from app.decoding.proposers.ngram import Ngram
from app.run.methods import METHODS
from app.run.metrics import counts
from toys import make_lane, run, sessions, tiny_llama

PROMPTS = ([5, 9, 2, 5, 9, 2, 5, 9], [1, 2, 3, 1, 2, 4, 1, 2, 5, 1, 2], [7, 8, 9, 10, 11])
DRAFT_LENGTH, NEW_TOKENS = 4, 80


class Counted(candidate_generator.PromptLookupCandidateGenerator):
    """Notes the guesses of each round, and how many of them generate() kept."""

    rounds: list[tuple[list[int], int]]

    def get_candidates(self, input_ids, **kwargs):
        candidates, logits = super().get_candidates(input_ids, **kwargs)
        self.guesses = candidates[0, input_ids.shape[1] :].tolist()
        return candidates, logits

    def update_candidate_strategy(self, input_ids, scores, num_matches):
        type(self).rounds.append((self.guesses, int(num_matches)))


def theirs(model, text, longest, monkeypatch):
    """What generate() writes behind a text, and its rounds: guesses, and how many were kept."""
    monkeypatch.setattr(Counted, "rounds", [], raising=False)
    monkeypatch.setattr(utils, "PromptLookupCandidateGenerator", Counted)
    ids = torch.tensor([text])
    written = model.inner.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=NEW_TOKENS + 2 * DRAFT_LENGTH,
        do_sample=False,
        prompt_lookup_num_tokens=DRAFT_LENGTH,
        max_matching_ngram_size=longest,
        eos_token_id=None,
        pad_token_id=0,
    )
    return written[0].tolist(), Counted.rounds


def ours(model, prompt, longest):
    """What our loop writes with the same rule."""
    proposer = Ngram(shortest=1, longest=longest, match="first", end_ids=())
    lane = make_lane(
        prompt, proposer=proposer, draft_length=DRAFT_LENGTH, max_new_tokens=NEW_TOKENS
    )
    return run(lane, sessions(model))


@pytest.mark.parametrize("longest", [1, 2, 3])
@pytest.mark.parametrize("prompt", PROMPTS)
def test_drafts_and_counts_are_those_of_transformers(prompt, longest, monkeypatch):
    model = tiny_llama(11)
    lane = ours(model, prompt, longest)
    # Our prompt pass guesses nothing, so theirs begins behind our first token.
    written, rounds = theirs(model, [*prompt, lane.first.id], longest, monkeypatch)
    assert [*prompt, *lane.token_ids] == written[: len(prompt) + NEW_TOKENS]
    whole = [round_ for round_ in lane.rounds if round_.limit == DRAFT_LENGTH]
    assert len(whole) >= 10
    found = [
        (
            [t.id for t in (*round_.committed, *round_.thrown) if t.source],
            round_.count("accepted"),
        )
        for round_ in whole
    ]
    assert found == rounds[: len(found)]
    # The counts, as both would print them.
    lane.rounds[:] = whole
    tally = counts(lane)
    assert tally.rounds == len(found)
    assert tally.drafted == sum(len(guesses) for guesses, _ in rounds[: len(found)])
    assert tally.accepted == sum(kept for _, kept in rounds[: len(found)])
    assert tally.committed_after_first == tally.accepted + len(found)


def test_each_choice_of_a_match_copies_from_its_own_place():
    # Behind 1 2 stands 3 at first, 4 twice, and 5 at last.
    text = [1, 2, 3, 1, 2, 4, 1, 2, 4, 6, 1, 2, 5, 1, 2]
    found = {
        match: guessed(Ngram(shortest=1, longest=2, match=match, end_ids=()), text)
        for match in ("first", "most-frequent", "last")
    }
    assert found == {
        "first": [3, 1, 2, 4],
        "most-frequent": [4, 6, 1, 2],
        "last": [5, 1, 2],
    }


@pytest.mark.parametrize("match", ["first", "most-frequent", "last"])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 3), (2, 5), (5, 5)])
def test_guesses_are_those_of_a_search_through_all_of_the_text(match, sizes):
    drawn = random.Random(f"{match} {sizes}")
    text = [drawn.randrange(3) for _ in range(150)]
    proposer = Ngram(shortest=sizes[0], longest=sizes[1], match=match, end_ids=())
    shown = [guessed(proposer, text[:end]) for end in range(1, len(text))]
    assert shown == [searched(text[:end], *sizes, match) for end in range(1, len(text))]
    assert sum(map(bool, shown)) > 20


def searched(text, shortest, longest, match):
    """Up to 4 guesses by the definition: the longest size that is found, then the place."""
    for size in range(longest, shortest - 1, -1):
        run = text[len(text) - size :]
        ends = [end for end in range(size, len(text)) if text[end - size : end] == run]
        if ends:
            times = Counter(text[end] for end in ends)
            most = [end for end in ends if times[text[end]] == max(times.values())]
            end = {"first": ends[0], "last": ends[-1], "most-frequent": most[-1]}[match]
            return text[end : end + 4]
    return []


@pytest.mark.parametrize("longest", [2, 3])
def test_the_preset_of_transformers_guesses_what_its_generator_does(longest):
    preset = METHODS["ngram"].preset("transformers")
    theirs_ = candidate_generator.PromptLookupCandidateGenerator(
        num_output_tokens=preset.draft_length, max_length=10_000
    )
    assert theirs_.max_matching_ngram_size == preset.options["longest"]
    theirs_.max_matching_ngram_size = longest
    ours_ = preset_ngram("transformers", longest=longest)
    drawn = random.Random(longest)
    text = [drawn.randrange(6) for _ in range(300)]
    for end in range(2, len(text)):
        ids = torch.tensor([text[:end]])
        candidates, _ = theirs_.get_candidates(ids)
        found = guessed(ours_, text[:end], limit=preset.draft_length)
        assert found == candidates[0, end:].tolist()


def test_the_preset_of_vllm_guesses_by_its_definition():
    # The longest size within both bounds, and of its places the earliest.
    preset = METHODS["ngram"].preset("vllm")
    proposer = preset_ngram("vllm")
    drawn = random.Random(5)
    text = [drawn.randrange(2) for _ in range(300)]
    shown = [guessed(proposer, text[:end]) for end in range(1, len(text))]
    assert shown == [searched(text[:end], 5, 5, "first") for end in range(1, len(text))]
    assert preset.draft_length is None


def preset_ngram(name, **changes):
    """The proposer with a preset's values."""
    values = {**METHODS["ngram"].preset(name).options, **changes}
    return Ngram(**values, end_ids=())


def guessed(proposer, text, limit=4):
    try:
        next(proposer.propose(text, limit=limit, round_=0))
    except StopIteration as done:
        return done.value.block.ids
    raise AssertionError("it asked for a pass")
