"""What a bench found: figures by category and overall, with intervals, and whether it pays."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import msgspec

from app.appraisal.appraise import account_of, not_costed, step_costs, tried
from app.appraisal.doubt import doubt
from app.elsewhere.programs import recipes
from app.elsewhere.setup import Recipe
from app.reports.bench_conditions import BenchConditions, conditions_of
from app.reports.bench_figures import CategoryFigures, Measurement, figures
from app.run.cost import MethodCosts, PassCosts
from app.run.figures import badge
from app.run.record import RunRecord
from app.run.settings import RunSettings
from app.run.tree_shape import pass_rows
from app.theory.account import prediction
from app.theory.costs import StepCosts
from app.theory.verdict import Measured, verdict

_UNKNOWN = MethodCosts(None, "the cost of its passes was not measured")
NO_COSTS: Mapping[str, MethodCosts] = MappingProxyType({})


class CostFigures(msgspec.Struct, frozen=True):
    """What passes and guesses cost for one way, in seconds."""

    seconds: dict[int, float]
    """A pass of the target by its rows."""
    context: int
    """Tokens behind which passes and steps were measured."""
    whole: int
    """Rows of the pass over a whole draft."""
    draft: str | None
    """What guesses; null where a guess has no step of its own."""
    draft_step: float | None
    """A step of it as measured; of a tree a whole level."""
    guess: float
    """One more guess on average in these runs, where copies cost no step; of a tree one level."""


class WayFigures(msgspec.Struct, frozen=True):
    """What one method with one draft length came to."""

    method: str
    draft_length: int
    categories: dict[str, CategoryFigures]
    overall: CategoryFigures
    account: float | None
    """The speed-up that the rounds should have brought at the measured cost of their passes."""
    prediction: float | None
    """The speed-up that acceptance, draft length and costs alone promise."""
    cost: CostFigures | None
    verdict: str
    missing: str = ""
    """Why costs, account or prediction are missing; empty where all are there."""
    badge: str = ""
    """How its figures are marked where its runs are not lossless."""

    @property
    def name(self) -> str:
        """The way in words, with its badge."""
        way = f"{self.method}, draft length {self.draft_length}"
        return f"{way} · {self.badge}" if self.badge else way


class BenchSummary(msgspec.Struct, frozen=True):
    """The whole bench. `categories`, `overall`, `cost` and `verdict` are those of the best way."""

    categories: dict[str, CategoryFigures]
    overall: CategoryFigures
    cost: CostFigures | None
    verdict: str
    best: WayFigures
    ways: tuple[WayFigures, ...]
    conditions: BenchConditions
    elsewhere: tuple[Recipe, ...]
    """The set-up of the best way for other programs."""
    notes: tuple[str, ...] = ()
    """What was not run to its end, and why."""

    def json(self) -> str:
        """One line of strict JSON."""
        return json.dumps(msgspec.to_builtins(self, str_keys=True), allow_nan=False)


def summarise_bench(
    measurements: Sequence[Measurement],
    costs: Mapping[str, MethodCosts] = NO_COSTS,
    *,
    notes: Sequence[str] = (),
) -> BenchSummary | None:
    """The summary of what was measured; None for nothing. `costs` are those of each method."""
    ways: dict[tuple[str, int], list[Measurement]] = {}
    for one in measurements:
        settings = one[2].settings
        ways.setdefault((settings.method, settings.draft_length), []).append(one)
    lengths = {
        method: tried([record for _, _, record in measurements if record.settings.method == method])
        for method, _ in ways
    }
    found = {
        way: _way(way, runs, costs.get(way[0], _UNKNOWN), lengths=lengths[way[0]])
        for way, runs in ways.items()
    }
    if not found:
        return None
    best = max(found.values(), key=_speedup)
    _, _, made = ways[best.method, best.draft_length][0]
    return BenchSummary(
        categories=best.categories,
        overall=best.overall,
        cost=best.cost,
        verdict=best.verdict,
        best=best,
        ways=tuple(found.values()),
        conditions=conditions_of(measurements),
        elsewhere=recipes(made),
        notes=tuple(notes),
    )


def _speedup(way: WayFigures) -> float:
    return way.overall.decode_speedup.value if way.overall.decode_speedup else 0.0


def _way(
    way: tuple[str, int],
    runs: Sequence[Measurement],
    costs: MethodCosts,
    *,
    lengths: Collection[int],
) -> WayFigures:
    names = dict.fromkeys(category for _, category, _ in runs)
    categories = {name: figures([run for run in runs if run[1] == name]) for name in names}
    overall = figures(runs)
    records = [record for _, _, record in runs]
    steps = step_costs(records, costs.costs)
    accounted = account_of(records, steps) if steps else None
    acceptance = overall.conditional_acceptance
    predicted = None
    if steps is not None and acceptance is not None:
        predicted = prediction(acceptance, way[1], costs=steps).speedup
    speedup = overall.decode_speedup
    measured = Measured(speedup.value, speedup.low, speedup.high) if speedup else None
    return WayFigures(
        method=way[0],
        draft_length=way[1],
        categories=categories,
        overall=overall,
        account=accounted.speedup if accounted else None,
        prediction=predicted,
        cost=_cost(records[0].settings, costs.costs, steps),
        verdict=verdict(
            measured,
            way[1],
            costs=steps,
            acceptance=acceptance,
            tried=lengths,
            doubt=doubt(records),
        ).text,
        missing=_missing(records, costs, steps, predicted=predicted, acceptance=acceptance),
        badge=next(filter(None, map(badge, records)), ""),
    )


def _cost(
    settings: RunSettings, costs: PassCosts | None, steps: StepCosts | None
) -> CostFigures | None:
    if costs is None or steps is None:
        return None
    return CostFigures(
        seconds=dict(costs.seconds),
        context=costs.context_bucket,
        whole=pass_rows(settings, settings.draft_length),
        draft=costs.draft,
        draft_step=costs.draft_step,
        guess=steps.draft_step,
    )


def _missing(
    records: Sequence[RunRecord],
    costs: MethodCosts,
    steps: StepCosts | None,
    *,
    predicted: float | None,
    acceptance: float | None,
) -> str:
    """Why a figure of costs is missing; empty if none is."""
    if steps is None:
        return costs.missing
    if widths := not_costed(records, steps):
        return f"passes of {', '.join(map(str, widths))} rows were not measured"
    if acceptance is None:
        return "no guess was tested"
    return "" if predicted is not None else "a pass over a whole draft was not measured"
