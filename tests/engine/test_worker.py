"""The engine with the torch side in it, as far as that needs no model."""

from __future__ import annotations

from engine_watch import Listening

from app.engine.client import TORCH_BENCH
from app.engine.protocol import CountTokens, JobProblem, Run
from app.run.preparation import EngineReady, PrecisionsRefused, Prepare
from app.run.settings import RunSettings


def test_the_real_engine_says_what_it_is_and_tells_problems_in_words(engine: Listening) -> None:
    engine.client._factory = TORCH_BENCH
    engine.client.send(CountTokens(5, "a prompt"))
    engine.client.send(Prepare("no such pair"))
    engine.client.send(Run("a", RunSettings("no such pair", "a prompt")))
    heard = engine.until(JobProblem, more=3)
    (ready,) = [found for found in heard if isinstance(found, EngineReady)]
    assert ready.torch[0].isdigit()
    assert ready.device
    question, *jobs = [found for found in heard if isinstance(found, JobProblem)]
    assert question.question == 5
    assert "loaded" in question.message
    assert [job.question for job in jobs] == [None, None]
    assert all("no such pair" in job.message and job.remedy for job in jobs)
    assert not engine.client.busy


def test_the_real_engine_says_what_each_kind_of_device_cannot_take(engine: Listening) -> None:
    engine.client._factory = TORCH_BENCH
    engine.client.send(Prepare("no such pair"))
    heard = engine.until(PrecisionsRefused)
    (refused,) = [found for found in heard if isinstance(found, PrecisionsRefused)]
    assert "Choose bf16 or fp32." in refused.reasons["cpu"]["fp16"]
