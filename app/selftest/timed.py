"""The account: do the rounds of a run take what their passes, measured alone, say they take?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

import torch

from app.decoding.contracts import Draft, Draws, TargetRows, Verdict
from app.decoding.verifiers.greedy import Greedy
from app.run.metrics import counts, decode_seconds
from app.run.preparation import preparation
from app.run.problems import Problem
from app.run.record import RunRecord
from app.run.settings import RunSettings
from app.selftest import embedded
from app.selftest.models import record_here
from app.selftest.planted import Finding, planted, proved
from app.selftest.result import Result, tried
from app.selftest.runs import embedded_run, tiny_run
from app.studies.passes import Timings, time_passes
from app.studies.workbench import Workbench
from app.theory.account import account
from app.theory.costs import StepCosts

WITHIN = 0.25
"""How far an account may be off here; on a quiet machine it is within a tenth."""

TIMES = 3
"""Measurements and runs in turn, of which the median counts."""

_CONTEXT = 64
"""Tokens behind which the passes are measured, about as many as the runs have."""


def checks(folder: Path) -> Iterator[Result]:
    """The check, with the embedded pair if it is here, else with the tiny one in this home."""
    torch.set_num_threads(1)  # more are slowed unevenly by whatever else runs
    offered = embedded.catalogue()
    bench = Workbench(offered)
    if embedded.has_embedded(offered):
        settings = embedded_run(embedded.PAIR, offered.pair(embedded.PAIR).method)
    else:
        settings = tiny_run("ngram")
    yield tried(f"account of {settings.pair}", partial(_account, bench, settings))


def _account(bench: Workbench, settings: RunSettings) -> str:
    """Whether the time of the rounds adds up, and no longer does once the rule is slow."""
    fault = planted(Greedy, "verify", partial(_slow, _passes(bench, settings).seconds[1]))
    look = partial(_look, bench, settings)
    return proved(look, "a rule that takes a pass longer over a draft", fault)


def _look(bench: Workbench, settings: RunSettings) -> Finding:
    shares = sorted(_share(bench, settings) for _ in range(TIMES))
    told = f"loops took {100 * median(shares):+.0f} % beside their account"
    told += f" ({100 * shares[0]:+.0f} to {100 * shares[-1]:+.0f} %)"
    return Finding(abs(median(shares)) <= WITHIN, told)


def _share(bench: Workbench, settings: RunSettings) -> float:
    """The share by which the speculative rounds of a run took longer than accounted for."""
    costs = _passes(bench, settings)
    record = record_here(bench, settings)
    (fast,) = record.repetitions("speculative")
    accounted = account(
        [round_.width for round_ in fast.rounds],
        [round_.phases.draft_prompt + round_.phases.draft for round_ in fast.rounds],
        committed=counts(fast).committed_after_first,
        costs=StepCosts(costs.seconds, overhead=_overhead(record)),
    )
    share = accounted.unexplained(decode_seconds(fast)) if accounted else None
    if share is None:
        raise Problem("There was no loop to account for.", "")
    return share


def _passes(bench: Workbench, settings: RunSettings) -> Timings:
    pair = bench.loaded(preparation(settings), report=lambda progress: None, pause=lambda: None)
    widths = range(1, settings.draft_length + 2)
    return time_passes(pair.target.model, widths, context=_CONTEXT, pause=lambda: None)


def _overhead(record: RunRecord) -> float:
    """Seconds of a round besides drafting and the pass, as the baseline's rounds have them."""
    (slow,) = record.repetitions("baseline")
    return median(round_.phases.decide + round_.phases.rest for round_ in slow.rounds)


def _slow(
    seconds: float,
    sound: Callable[..., Verdict],
    rule: Greedy,
    draft: Draft,
    rows: TargetRows,
    draws: Draws,
) -> Verdict:
    """The rule, taking so much longer over a draft."""
    if len(draft):
        time.sleep(seconds)
    return sound(rule, draft, rows, draws)
