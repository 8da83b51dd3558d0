"""The figures of a combined method, split by who guessed."""

import msgspec
import pytest
from recorded import costed_record, run_record

from app.appraisal.appraise import step_costs
from app.appraisal.by_proposer import by_proposer
from app.appraisal.findings import findings


def relabelled(round_, source):
    """The round as if all its guesses had come from this proposer."""

    def renamed(tokens):
        return tuple(
            msgspec.structs.replace(token, source=source if token.source else None)
            for token in tokens
        )

    return msgspec.structs.replace(
        round_, committed=renamed(round_.committed), thrown=renamed(round_.thrown)
    )


@pytest.fixture
def combined():
    """Four loops, each of two accepted, a corrected, a rejected and an ignored: 3 by the head."""
    record = costed_record(loops=4)
    rounds = record.lanes[0].repetitions[0].rounds
    for place, source in enumerate(("head", "ngram", "head", "head")):
        rounds[place] = relabelled(rounds[place], source)
    return record


def test_each_proposer_has_the_loops_in_which_it_guessed(combined):
    head, ngram = by_proposer(combined)
    assert (head.source, ngram.source) == ("head", "ngram")
    assert (head.loops, ngram.loops) == (0.75, 0.25)
    assert (head.counts.accepted, head.counts.rejected, head.counts.ignored) == (6, 3, 3)
    assert (ngram.counts.accepted, ngram.counts.rejected) == (2, 1)
    assert head.counts.tokens_per_loop == ngram.counts.tokens_per_loop == 3.0


def test_findings_tell_of_the_split_only_where_there_is_one(combined):
    told = {one.label: one.value for one in findings(combined)}
    assert told["Guessed by head"] == "75.0 % of loops, 3.00 tokens each, 0.67 of tested kept"
    assert told["Guessed by n-gram"] == "25.0 % of loops, 3.00 tokens each, 0.67 of tested kept"
    for record in (costed_record(), run_record()):
        assert not [one for one in findings(record) if one.label.startswith("Guessed")]


def test_a_guess_of_an_ngram_costs_no_step_of_the_draft(combined):
    # Three of four loops are the head's, with as many guesses each.
    costs = combined.costs
    assert step_costs([combined], costs).draft_step == pytest.approx(0.75 * costs.draft_step)
    assert step_costs([costed_record()], costs).draft_step == costs.draft_step
