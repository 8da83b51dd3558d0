"""What a bench found: figures by category and overall, with intervals, and whether it pays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import median

import msgspec

from app.run.cost import PassCosts
from app.run.metrics import (
    counts,
    decode_seconds,
    phase_seconds,
    ratio,
    total_counts,
)
from app.run.record import Repetition, RunRecord
from app.theory.account import account
from app.theory.bootstrap import Pair, speedup_of_sums
from app.theory.costs import StepCosts
from app.theory.verdict import Measured, verdict

Measurement = tuple[str, str, RunRecord]
"""A prompt's id, its category, and the run."""


class Interval(msgspec.Struct, frozen=True):
    """A ratio, and its 95 % bootstrap interval over prompts and repetitions, where there is one."""

    value: float
    low: float | None
    high: float | None


class CategoryFigures(msgspec.Struct, frozen=True):
    """The figures of one category, or of all. Speeds are sums of tokens over sums of seconds."""

    prompts: int
    tokens_per_loop: float | None
    acceptance_rate: float | None
    conditional_acceptance: float | None
    decode_speedup: Interval | None
    speculative_tokens_per_second: float | None
    baseline_tokens_per_second: float | None


class WayFigures(msgspec.Struct, frozen=True):
    """What one method with one draft length came to."""

    method: str
    draft_length: int
    categories: dict[str, CategoryFigures]
    overall: CategoryFigures
    account: float | None
    """The speed-up that the rounds should have brought at the measured cost of their passes."""
    verdict: str


class CostFigures(msgspec.Struct, frozen=True):
    """Seconds of a target pass by its width, and of a step of the draft model."""

    seconds: dict[int, float]
    draft_step: float | None


class BenchSummary(msgspec.Struct, frozen=True):
    """The whole bench. `categories`, `overall` and `verdict` are those of the best way."""

    categories: dict[str, CategoryFigures]
    overall: CategoryFigures
    cost: CostFigures | None
    verdict: str
    best: WayFigures
    ways: tuple[WayFigures, ...]

    def json(self) -> str:
        """One line of strict JSON."""
        return json.dumps(msgspec.to_builtins(self, str_keys=True), allow_nan=False)


def summarise_bench(
    measurements: Sequence[Measurement], costs: PassCosts | None = None
) -> BenchSummary | None:
    """The summary of what was measured; None for nothing."""
    ways: dict[tuple[str, int], list[Measurement]] = {}
    for one in measurements:
        settings = one[2].settings
        ways.setdefault((settings.method, settings.draft_length), []).append(one)
    found = tuple(_way(way, runs, costs=costs) for way, runs in ways.items())
    if not found:
        return None
    best = max(found, key=_speedup)
    cost = CostFigures(dict(costs.seconds), costs.draft_step) if costs else None
    return BenchSummary(best.categories, best.overall, cost, best.verdict, best, found)


def _speedup(way: WayFigures) -> float:
    return way.overall.decode_speedup.value if way.overall.decode_speedup else 0.0


def _way(
    way: tuple[str, int], runs: Sequence[Measurement], *, costs: PassCosts | None
) -> WayFigures:
    names = dict.fromkeys(category for _, category, _ in runs)
    categories = {name: _figures([run for run in runs if run[1] == name]) for name in names}
    overall = _figures(runs)
    steps = _step_costs(runs, costs)
    return WayFigures(
        method=way[0],
        draft_length=way[1],
        categories=categories,
        overall=overall,
        account=_account(runs, steps),
        verdict=_verdict(overall, way[1], steps=steps),
    )


def _figures(runs: Sequence[Measurement]) -> CategoryFigures:
    """The figures of these runs together."""
    fast = [lane for _, _, record in runs for lane in record.repetitions("speculative")]
    slow = [lane for _, _, record in runs for lane in record.repetitions("baseline")]
    tally = total_counts(fast)
    interval = speedup_of_sums(_pairs(runs))
    single = ratio(_speed(fast) or 0.0, _speed(slow) or 0.0)
    speedup = None
    if interval is not None:
        speedup = Interval(interval.value, interval.low, interval.high)
    elif single:
        speedup = Interval(single, None, None)
    return CategoryFigures(
        prompts=len({prompt for prompt, _, _ in runs}),
        tokens_per_loop=tally.tokens_per_loop,
        acceptance_rate=tally.acceptance_rate,
        conditional_acceptance=tally.conditional_acceptance,
        decode_speedup=speedup,
        speculative_tokens_per_second=_speed(fast),
        baseline_tokens_per_second=_speed(slow),
    )


def _speed(lanes: Sequence[Repetition]) -> float | None:
    tokens = sum(counts(lane).committed_after_first for lane in lanes)
    return ratio(tokens, sum(decode_seconds(lane) for lane in lanes))


def _pairs(runs: Sequence[Measurement]) -> list[Pair]:
    """The paired repetitions of each prompt that wrote something in both lanes."""
    found = []
    for prompt, _, record in runs:
        lanes = zip(record.repetitions("speculative"), record.repetitions("baseline"), strict=False)
        for fast, slow in lanes:
            sides = [(counts(x).committed_after_first, decode_seconds(x)) for x in (fast, slow)]
            if all(tokens and seconds for tokens, seconds in sides):
                found.append(Pair(prompt, *sides[0], *sides[1]))
    return found


def _step_costs(runs: Sequence[Measurement], costs: PassCosts | None) -> StepCosts | None:
    """The measured costs of passes, and the rest of a round as these runs had it."""
    if costs is None:
        return None
    rest = {
        lane: [_rest(one) for _, _, record in runs for one in record.repetitions(lane)]
        for lane in ("speculative", "baseline")
    }
    overhead, baseline = (
        median([value for value in values if value is not None] or [0.0])
        for values in rest.values()
    )
    return StepCosts(costs.seconds, costs.draft_step or 0.0, overhead, baseline)


def _rest(lane: Repetition) -> float | None:
    """Seconds a round that neither the draft nor the pass accounts for."""
    phases = phase_seconds(lane)
    return ratio(phases.decide + phases.rest, len(lane.rounds))


def _account(runs: Sequence[Measurement], steps: StepCosts | None) -> float | None:
    if steps is None:
        return None
    rounds = [
        round_
        for _, _, record in runs
        for lane in record.repetitions("speculative")
        for round_ in lane.rounds
    ]
    found = account(
        [round_.drafted + 1 for round_ in rounds],
        [round_.phases.draft + round_.phases.draft_prompt for round_ in rounds],
        committed=sum(len(round_.committed) for round_ in rounds),
        costs=steps,
    )
    return found.speedup if found else None


def _verdict(overall: CategoryFigures, draft_length: int, *, steps: StepCosts | None) -> str:
    speedup = overall.decode_speedup
    measured = Measured(speedup.value, speedup.low, speedup.high) if speedup else None
    acceptance = overall.conditional_acceptance
    return verdict(measured, draft_length, costs=steps, acceptance=acceptance).text
