"""Nothing of a run is left for the next: A, B, A again, with every method, drawn and not."""

import msgspec
import pytest
import torch

from app.run.methods import METHODS
from app.run.settings import Sampling

OPTIONS = {"ngram": {"shortest": 1}, "suffix": {"cached": 0}}
"""Suffix decoding is asked to copy from no earlier run, which is what it is there for otherwise."""

SAMPLINGS = {
    "greedy": Sampling(),
    "drawn": Sampling(temperature=1.0, seed=3),
    "penalised": Sampling(temperature=0.8, top_p=0.9, repetition_penalty=1.3, seed=3),
}


@pytest.fixture(autouse=True)
def one_thread():
    """Models as small as these lose by more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def untimed(record):
    """All that was decided in a run: every round but for its seconds."""
    return [
        [
            repetition.first,
            *(msgspec.structs.replace(round_, phases=None) for round_ in repetition.rounds),
            repetition.finish,
        ]
        for lane in record.lanes
        for repetition in lane.repetitions
    ]


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
@pytest.mark.parametrize("method", METHODS)
def test_a_run_after_another_is_what_it_was_before_it(run_tiny, method, sampling):
    asked = {"method": method, "method_options": OPTIONS.get(method, {}), "sampling": sampling}
    first = run_tiny(**asked)
    other = run_tiny(**{**asked, "prompt": "quite another text, another text", "draft_length": 2})
    again = run_tiny(**asked)
    assert untimed(again) == untimed(first)
    assert untimed(other) != untimed(first)


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_alone_decides_what_is_drawn(run_tiny, method):
    def drawn(seed):
        sampling = Sampling(temperature=1.0, seed=seed)
        return run_tiny(
            method=method, method_options=OPTIONS.get(method, {}), sampling=sampling
        ).repetitions("speculative")[0]

    torch.manual_seed(1)
    one = drawn(1)
    torch.manual_seed(2)  # the global generator has no say
    assert drawn(1).token_ids == one.token_ids
    assert drawn(2).token_ids != one.token_ids
    greedy = run_tiny(method=method, method_options=OPTIONS.get(method, {}))
    assert greedy.repetitions("speculative")[0].token_ids != one.token_ids
