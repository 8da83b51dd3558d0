"""`audit`: what it asks of the workbench, what it prints, and its exit code."""

import json

import pytest

from app.run.auditing import Audited
from app.run.events import Progress
from app.run.problems import Cancelled


def answering(**changes):
    """An answer to whatever audit is asked for."""

    def answer(wanted):
        found = {
            "asked": wanted.runs, "runs": wanted.runs, "lossless": True, "drafted": 900,
            "accepted": 400, "texts": 256, "tv": 0.05, "bound": 0.2, "impossible": 0, "edge": 0,
            "statistic": 80.0, "cells": 79, "chance": 0.4, "smallest_seen": 0.1,
        }  # fmt: skip
        return Audited(settings=wanted.settings, **{**found, **changes})

    return staticmethod(answer)


@pytest.fixture(autouse=True)
def sound(workbench):
    workbench.answer = answering()


def test_the_flags_are_the_settings(call, workbench):
    done = call(
        "audit", "--pair", "embedded-nf4-draft", "--method", "draft-model", "--rule", "exact",
        "--draft-length", "1", "--temperature", "0.7", "--top-k", "3", "--runs", "50",
        "--seed", "9", "--prompt", "Hi", "--no-raw",
    )  # fmt: skip
    assert done.code == 0, done.err
    asked = workbench.audited
    assert (asked.runs, asked.settings.pair, asked.settings.prompt) == (
        50,
        "embedded-nf4-draft",
        "Hi",
    )
    settings = asked.settings
    assert (settings.method, settings.rule, settings.raw) == ("draft-model", "exact", False)
    assert (settings.draft_length, settings.max_new_tokens) == (1, 3)
    assert settings.ignore_end_of_text
    sampling = settings.sampling
    assert (sampling.temperature, sampling.top_k, sampling.seed) == (0.7, 3, 9)
    assert "Audit: within chance. 50 texts, 400 of 900 guesses kept" in done.out


@pytest.mark.parametrize(
    ("changes", "code", "verdict"),
    [
        ({}, 0, "within chance"),
        ({"chance": 1e-6}, 1, "NOT the target's law"),
        ({"impossible": 1}, 1, "NOT the target's law"),
        ({"drafted": 0, "accepted": 0}, 1, "nothing was guessed"),
        ({"runs": 12}, 130, "within chance"),
    ],
)
def test_the_exit_code_and_the_json_say_the_verdict(call, workbench, changes, code, verdict):
    workbench.answer = answering(**changes)
    done = call("audit", "--json")
    assert done.code == code
    found = json.loads(done.out)
    assert found["verdict"] == verdict
    assert found["passed"] == (verdict == "within chance")
    assert (found["bound"], found["asked"]) == (0.2, 1000)
    assert found["runs"] == changes.get("runs", 1000)


def test_progress_goes_to_stderr(call, workbench):
    workbench.before = staticmethod(lambda report, pause: report(Progress("auditing", 1, 5)))
    done = call("audit", "--json")
    assert "auditing" in done.err
    json.loads(done.out)


def test_a_stop_before_the_first_text_is_130(call, workbench):
    def stop(report, pause):
        raise Cancelled

    workbench.before = staticmethod(stop)
    assert call("audit").code == 130


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--temperature", "0"], "temperature 0"),
        (["--top-k", "0"], "top-k"),
        (["--draft-length", "6"], "smaller top-k or draft length"),
        (["--runs", "0"], "0 runs"),
        (["--method", "telepathy"], "telepathy"),
    ],
)
def test_what_cannot_be_audited_is_a_problem(call, workbench, flags, word):
    done = call("audit", *flags)
    assert done.code == 1
    assert word in done.err
    assert workbench.audited is None
