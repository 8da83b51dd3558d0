"""A bench as tables: the same on the terminal and in every report for people."""

from __future__ import annotations

from collections.abc import Sequence

from app.reports.bench_conditions import Counted, to_repeat
from app.reports.bench_figures import DEFINITIONS, CategoryFigures, Interval
from app.reports.bench_summary import BenchSummary, WayFigures
from app.reports.html.tables import Table
from app.run.figures import NOTHING, decimal, percent
from app.theory.percentiles import Percentiles

ALL = "all together"

_HEAD = (
    "Category",
    "Prompts",
    "Turns",
    "Tokens per loop",
    "Accepted of drafted",
    "Accepted of tested",
    "Speculative tokens/s",
    "Baseline tokens/s",
    "Decode speed-up",
    "Ratio of means",
    "Request speed-up",
)
_NEEDED = (
    "Decode speed-up",
    "Tokens per loop",
    "Speculative tokens/s",
    "Baseline tokens/s",
    "Accepted of tested",
    "Accepted of drafted",
    "Request speed-up",
    "Ratio of means",
    "Prompts",
    "Turns",
)
"""The same, the most needed first."""


def bench_tables(summary: BenchSummary) -> list[Table]:
    """The tables of figures: the ways side by side, then each of them, waiting, and their costs.

    Behind them those of cautions and notes, if there are any.
    """
    several = [_side_by_side(summary.ways)] if len(summary.ways) > 1 else []
    cost = _costs(summary.ways)
    told = summary.conditions
    minded = [
        _counted(caption, lines, told.runs)
        for caption, lines in (("Cautions", told.cautions), ("Notes", told.notes))
        if lines
    ]
    return [*several, *map(_way, summary.ways), _waiting(summary.ways), *cost, *minded]


def condition_tables(summary: BenchSummary) -> list[Table]:
    """What was not held equal, and all that is needed to repeat the bench."""
    told = summary.conditions
    facts = to_repeat(told, [way.name for way in summary.ways])
    rows = tuple((name, str(value)) for name, value in facts)
    return [
        _counted("What was not held equal", told.not_held_equal, told.runs),
        Table("To repeat it", ("Name", "Value"), rows, words=True),
    ]


def _counted(caption: str, lines: Sequence[Counted], runs: int) -> Table:
    rows = tuple((one.text, f"{one.runs} of {runs}") for one in lines)
    return Table(caption, ("What", "Runs"), rows, words=True)


def definitions() -> Table:
    """What the columns mean."""
    return Table("Definitions", ("Column", "Meaning"), tuple(DEFINITIONS.items()), words=True)


def sentence(text: str) -> str:
    """A clause as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def _side_by_side(ways: Sequence[WayFigures]) -> Table:
    """The decode speed-up of every way, a row a category."""
    head = ("Category", *(way.name for way in ways))
    names = dict.fromkeys(name for way in ways for name in way.categories)
    rows = [
        (name, *(_speedup(way.categories[name]) if name in way.categories else NOTHING
                 for way in ways))
        for name in names
    ]  # fmt: skip
    rows.append((ALL, *(_speedup(way.overall) for way in ways)))
    return Table("Decode speed-up", head, tuple(rows))


def _speedup(figures: CategoryFigures) -> str:
    found = figures.decode_speedup
    if figures.unguessed and found is not None:
        return f"{found.value:.2f}× (no guess)"
    return _interval(found)


def _way(way: WayFigures) -> Table:
    rows = [_row(name, one) for name, one in (*way.categories.items(), (ALL, way.overall))]
    note = f"{sentence(way.verdict)}{_due(way)}"
    return Table(sentence(way.name)[:-1], _HEAD, tuple(rows), note, needed=_NEEDED)


def _due(way: WayFigures) -> str:
    """What it should have brought by its costs, and why that is not told where it is not."""
    said = ""
    if way.account is not None:
        said += f" By the cost of its passes it should be {way.account:.2f}×."
    if way.prediction is not None:
        said += f" By acceptance and costs alone it would be {way.prediction:.2f}×."
    if way.missing:
        said += f" What it should be by its costs is {NOTHING}: {way.missing}."
    return said


def _row(name: str, figures: CategoryFigures) -> tuple[str, ...]:
    return (
        f"{name}: no guess was made" if figures.unguessed else name,
        str(figures.prompts),
        str(figures.turns),
        decimal(figures.tokens_per_loop),
        percent(figures.acceptance_rate),
        percent(figures.conditional_acceptance),
        decimal(figures.speculative_tokens_per_second),
        decimal(figures.baseline_tokens_per_second),
        _interval(figures.decode_speedup),
        _interval(figures.speedup_of_means),
        _interval(figures.request_speedup),
    )


def _waiting(ways: Sequence[WayFigures]) -> Table:
    """How long one waits for text, over all prompts, and what turns found in their caches."""
    shares = ("p50", "p90", "p95")
    head = ("Way", "Lane", *(f"Chunk gap {share}, ms" for share in shares))
    head += (*(f"Per token {share}, ms" for share in shares), "Reused")
    rows = []
    for way in ways:
        one = way.overall
        reused = percent(one.prompt_reused / one.prompt_tokens if one.prompt_tokens else None)
        for lane, gaps, tokens in (
            ("speculative", one.speculative_chunk_gaps, one.speculative_seconds_per_token),
            ("baseline", one.baseline_chunk_gaps, one.baseline_seconds_per_token),
        ):
            rows.append((way.name, lane, *_milliseconds(gaps), *_milliseconds(tokens), reused))
    return Table("Waiting, over all prompts", head, tuple(rows))


def _costs(ways: Sequence[WayFigures]) -> list[Table]:
    """What passes cost by their rows, a column for methods that share them, and the cost of a draft
    of each way; nothing where no costs are known.
    """
    if not any(way.cost for way in ways):
        return []
    return [_passes(ways), Table("Cost of a draft", _DRAFT_HEAD, tuple(map(_draft, ways)))]


def _passes(ways: Sequence[WayFigures]) -> Table:
    methods = {way.method: way.cost for way in ways if way.cost}
    alike: dict[tuple[tuple[int, float], ...], list[str]] = {}
    for method, cost in methods.items():
        alike.setdefault(tuple(sorted(cost.seconds.items())), []).append(method)
    columns = [dict(seconds) for seconds in alike]
    rows = [
        (f"{width} row{'s' if width > 1 else ''}", *(_ms(one.get(width)) for one in columns))
        for width in sorted({width for one in columns for width in one})
    ]
    head = ("Pass of the target, ms", *map(", ".join, alike.values()))
    contexts = ", ".join(sorted({str(cost.context) for cost in methods.values()}))
    note = f"Medians, measured on this machine behind a context of {contexts} tokens."
    return Table("Cost of a pass", head, tuple(rows), note)


_DRAFT_HEAD = (
    "Way",
    "Guesses by",
    "Step of it, ms",
    "A guess, ms",
    "Rows of a whole draft",
    "Its pass, ms",
    "Its pass in single steps",
)


def _draft(way: WayFigures) -> tuple[str, ...]:
    cost = way.cost
    if cost is None:
        return (way.name, *(NOTHING,) * (len(_DRAFT_HEAD) - 1))
    whole = cost.seconds.get(cost.whole)
    return (
        way.name,
        cost.draft or "no model",
        _ms(cost.draft_step),
        _ms(cost.guess),
        str(cost.whole),
        _ms(whole),
        decimal(None if whole is None else whole / cost.seconds[1]),
    )


def _ms(seconds: float | None) -> str:
    return NOTHING if seconds is None else f"{1000 * seconds:.2f}"


def _milliseconds(found: Percentiles | None) -> tuple[str, ...]:
    if found is None:
        return (NOTHING,) * 3
    return tuple(f"{1000 * seconds:.1f}" for seconds in (found.p50, found.p90, found.p95))


def _interval(found: Interval | None) -> str:
    if found is None:
        return NOTHING
    if found.low is None or found.high is None:
        return f"{found.value:.2f}× (one pair)"
    return f"{found.value:.2f}× ({found.low:.2f}–{found.high:.2f})"
