"""Each embedded pair, run to its end by the real engine process."""

import time

import pytest

from app.engine.client import EngineClient
from app.engine.protocol import CountTokens, Run, TokenCount
from app.run.identities import violations
from app.run.metrics import counts, decode_speedup
from app.run.preparation import Prepared
from app.run.settings import RunSettings

pytestmark = pytest.mark.embedded

PAIRS = {
    "embedded": ("ngram", "fp32"),
    "embedded-nf4-draft": ("draft-model", "bf16"),
}


def until(client, kind, seconds=300.0):
    """Drains until a message of this kind has come; returns all that came."""
    seen = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seen += client.drain()
        if any(isinstance(message, kind) for message in seen):
            return seen
        time.sleep(0.02)
    raise AssertionError(f"no {kind} within {seconds} s; came: {seen[-5:]}")


@pytest.mark.parametrize("pair", PAIRS)
def test_a_pair_runs_in_the_engine(pair):
    from app.run.events import RunEnded

    method, precision = PAIRS[pair]
    settings = RunSettings(
        pair=pair,
        prompt="Repeat after me: one two three, one two three, one two three.",
        method=method,
        precision=precision,
        max_new_tokens=24,
        order="interleaved",
        detail="full",
    )
    client = EngineClient()
    try:
        client.send(Run("run", settings))
        until(client, RunEnded)
        record = client.record
        assert record.outcome == "finished", record.message
        assert (record.draft is not None) == (method == "draft-model")
        for lane in ("speculative", "baseline"):
            (repetition,) = record.repetitions(lane)
            assert violations(repetition) == []
            assert repetition.text.strip()
        assert counts(record.repetitions("speculative")[0]).accepted > 0
        assert counts(record.repetitions("baseline")[0]).tokens_per_loop == 1.0
        assert decode_speedup(record).single
        client.send(CountTokens(1, "one two"))
        (count,) = [m for m in until(client, TokenCount) if isinstance(m, TokenCount)]
        assert count.tokens > 2
        assert not any(isinstance(m, Prepared) for m in client.drain())
    finally:
        client.close()
    assert not client.alive
