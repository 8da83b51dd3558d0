"""What a bench found: figures by category and overall, with intervals, and whether it pays."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from app.appraisal.appraise import account_of, step_costs
from app.reports.bench_conditions import BenchConditions, conditions_of
from app.reports.bench_figures import CategoryFigures, Measurement, figures
from app.run.cost import PassCosts
from app.run.figures import badge
from app.theory.costs import StepCosts
from app.theory.verdict import Measured, verdict


class WayFigures(msgspec.Struct, frozen=True):
    """What one method with one draft length came to."""

    method: str
    draft_length: int
    categories: dict[str, CategoryFigures]
    overall: CategoryFigures
    account: float | None
    """The speed-up that the rounds should have brought at the measured cost of their passes."""
    verdict: str
    badge: str = ""
    """How its figures are marked where its runs are not lossless."""

    @property
    def name(self) -> str:
        """The way in words, with its badge."""
        way = f"{self.method}, draft length {self.draft_length}"
        return f"{way} · {self.badge}" if self.badge else way


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
    conditions: BenchConditions
    notes: tuple[str, ...] = ()
    """What was not run to its end, and why."""

    def json(self) -> str:
        """One line of strict JSON."""
        return json.dumps(msgspec.to_builtins(self, str_keys=True), allow_nan=False)


def summarise_bench(
    measurements: Sequence[Measurement],
    costs: PassCosts | None = None,
    *,
    notes: Sequence[str] = (),
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
    return BenchSummary(
        categories=best.categories,
        overall=best.overall,
        cost=CostFigures(dict(costs.seconds), costs.draft_step) if costs else None,
        verdict=best.verdict,
        best=best,
        ways=found,
        conditions=conditions_of(measurements),
        notes=tuple(notes),
    )


def _speedup(way: WayFigures) -> float:
    return way.overall.decode_speedup.value if way.overall.decode_speedup else 0.0


def _way(
    way: tuple[str, int], runs: Sequence[Measurement], *, costs: PassCosts | None
) -> WayFigures:
    names = dict.fromkeys(category for _, category, _ in runs)
    categories = {name: figures([run for run in runs if run[1] == name]) for name in names}
    overall = figures(runs)
    records = [record for _, _, record in runs]
    steps = step_costs(records, costs)
    accounted = account_of(records, steps) if steps else None
    return WayFigures(
        method=way[0],
        draft_length=way[1],
        categories=categories,
        overall=overall,
        account=accounted.speedup if accounted else None,
        verdict=_verdict(overall, way[1], steps=steps),
        badge=next(filter(None, map(badge, records)), ""),
    )


def _verdict(overall: CategoryFigures, draft_length: int, *, steps: StepCosts | None) -> str:
    speedup = overall.decode_speedup
    measured = Measured(speedup.value, speedup.low, speedup.high) if speedup else None
    acceptance = overall.conditional_acceptance
    return verdict(measured, draft_length, costs=steps, acceptance=acceptance).text
