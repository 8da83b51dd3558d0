"""The n-gram proposer and its counts beside the prompt lookup of transformers' generate()."""

import pytest
import torch
from transformers.generation import candidate_generator, utils

from app.decoding.proposers.ngram import Ngram
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


class KeepsTheFirst(dict):
    """An index that keeps the earliest place, as transformers takes it; ours takes the latest."""

    def __setitem__(self, run, end):
        self.setdefault(run, end)


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
    proposer = Ngram(shortest=1, longest=longest, end_ids=())
    proposer._last_end = KeepsTheFirst()
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


def test_the_match_rule_matters_so_the_comparison_can_fail():
    # Behind 1 2 stands 3 at first, 5 at last.
    text = PROMPTS[1]
    latest = Ngram(shortest=1, longest=2, end_ids=())
    earliest = Ngram(shortest=1, longest=2, end_ids=())
    earliest._last_end = KeepsTheFirst()
    assert guessed(latest, text)[0] == 5
    assert guessed(earliest, text)[0] == 3


def guessed(proposer, text):
    try:
        next(proposer.propose(text, limit=4, round_=0))
    except StopIteration as done:
        return done.value.block.ids
    raise AssertionError("it asked for a pass")
