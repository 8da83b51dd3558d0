"""At temperature 0, in fp32, every method writes the baseline's tokens, whatever is guessed."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from app.run.methods import METHODS
from app.run.metrics import counts
from app.run.record import Repetition
from app.run.settings import Sampling
from app.selftest.models import record_here
from app.selftest.runs import tiny_run

TOKENS = 28
PENALTIES = {
    "without penalties": Sampling(),
    "with penalties": Sampling(repetition_penalty=1.3, presence_penalty=0.5),
}


@pytest.fixture(scope="module")
def written(tiny_bench):
    """What a method writes with so many guesses a round: the self-test's own run of it."""

    @cache
    def run(method: str, length: int, penalties: str) -> Repetition:
        settings = msgspec.structs.replace(
            tiny_run(method),
            draft_length=length,
            sampling=PENALTIES[penalties],
            max_new_tokens=TOKENS,
            baseline=False,
        )
        (found,) = record_here(tiny_bench, settings).repetitions("speculative")
        return found

    @cache
    def baseline(method: str, penalties: str) -> list[int]:
        plain = msgspec.structs.replace(tiny_run(method), method="nothing", method_options={})
        settings = msgspec.structs.replace(
            plain, sampling=PENALTIES[penalties], max_new_tokens=TOKENS, baseline=False
        )
        return record_here(tiny_bench, settings).repetitions("speculative")[0].token_ids

    return run, baseline


@pytest.mark.parametrize("penalties", PENALTIES)
@pytest.mark.parametrize("length", range(1, 9))
@pytest.mark.parametrize("method", METHODS)
def test_greedy_ids_are_the_baselines(written, method, length, penalties):
    run, baseline = written
    found = run(method, length, penalties)
    assert len(found.token_ids) == TOKENS
    assert found.token_ids == baseline(method, penalties)


@pytest.mark.parametrize("method", METHODS)
def test_guesses_were_made_so_that_something_was_tried(written, method):
    run, _ = written
    tallies = [counts(run(method, length, "without penalties")) for length in range(1, 9)]
    assert method == "nothing" or all(tally.drafted for tally in tallies)


def test_penalties_make_another_text(written):
    _, baseline = written
    assert baseline("nothing", "without penalties") != baseline("nothing", "with penalties")
