"""The charts of a report: the first repetition of each lane along its loops, and by position."""

from __future__ import annotations

import msgspec
from markupsafe import Markup

from app.reports.html.drawing import (
    Axis,
    Frame,
    bars,
    curve,
    even_axis,
    level,
    marks,
    picture,
    shared_bars,
)
from app.reports.html.series import RECENT, LoopSeries, loop_series
from app.run.events import LaneName
from app.run.figures import FIGURES, NOTHING, draft_cost
from app.run.metrics import acceptance_by_position
from app.run.record import RunRecord
from app.run.tree_shape import pass_rows, tree_shape

_RATES = ((0.0, "0"), (0.25, ""), (0.5, "50 %"), (0.75, ""), (1.0, "100 %"))


class Chart(msgspec.Struct, frozen=True):
    """A chart with its heading, its key and what it means."""

    title: str
    meaning: str
    key: tuple[tuple[str, str], ...]
    """What each line or bar is, and the class that gives it its look."""
    svg: Markup


def charts(record: RunRecord) -> list[Chart]:
    """Every chart of a record; those with nothing to show are empty fields."""
    first = {name: _series(record, name) for name in ("speculative", "baseline")}
    fast, slow = first["speculative"], first["baseline"]
    return [
        _acceptance(fast, record),
        _tokens_per_loop(fast, record),
        _speed(fast, slow, record),
        _positions(record),
        _costs(record),
    ]


def _series(record: RunRecord, lane: LaneName) -> LoopSeries:
    found = record.repetitions(lane)
    return loop_series(found[0].rounds if found else [])


def _acceptance(lane: LoopSeries, record: RunRecord) -> Chart:
    meaning = "Guesses accepted / guesses made, from the first loop until each."
    frame = Frame(_loops(lane), Axis(0, 1.05, _RATES))
    points = list(enumerate(lane.acceptance, 1))
    return _chart(
        "acceptance_rate",
        "Acceptance so far",
        meaning,
        record=record,
        frame=frame,
        parts=[curve(frame, points, "speculative")],
        key=(("acceptance rate", "line speculative"),),
    )


def _tokens_per_loop(lane: LoopSeries, record: RunRecord) -> Chart:
    ceiling = record.settings.draft_length + 1
    meaning = (
        f"Tokens that each pass of the target added: at most γ + 1 = {ceiling}. "
        "Where loops are many, neighbours share a bar that shows their mean."
    )
    frame = Frame(_loops(lane, bars=True), even_axis(1.05 * ceiling, "", whole=True))
    mean = list(enumerate(lane.tokens_per_loop, 1))
    key = [("each loop", "bar each"), ("mean so far", "line mean"), ("γ + 1", "line ceiling")]
    each = shared_bars(lane.committed)
    full = [
        ((left + right) / 2, height)
        for (left, right, height), (_, _, share) in zip(
            each, shared_bars(lane.outgrown), strict=True
        )
        if share
    ]
    if full:
        meaning += " A triangle marks loops without a guess, as the draft's own context is full."
        key.append(("▲ draft's context full", "bar own"))
    return _chart(
        "tokens_per_loop",
        "Tokens per loop",
        meaning,
        record=record,
        frame=frame,
        parts=[
            bars(frame, each, "each"),
            level(frame, ceiling, "ceiling"),
            curve(frame, mean, "mean"),
            marks(frame, full, "own"),
        ],
        key=tuple(key),
    )


def _speed(fast: LoopSeries, slow: LoopSeries, record: RunRecord) -> Chart:
    meaning = (
        f"Tokens a second over the latest {RECENT} loops, against seconds of decoding, "
        "each lane on its own clock."
    )
    lanes: dict[str, LoopSeries] = {"baseline": slow, "speculative": fast}
    highest = max((v for lane in lanes.values() for v in lane.speed if v is not None), default=0)
    longest = max((lane.seconds[-1] for lane in lanes.values() if lane.seconds), default=0)
    frame = Frame(even_axis(longest, "seconds"), even_axis(1.08 * highest, ""))
    drawn = [
        curve(frame, list(zip(lane.seconds, lane.speed, strict=True)), name)
        for name, lane in lanes.items()
    ]
    key = (("speculative", "line speculative"), ("baseline", "line baseline"))
    return _chart(
        "decode_speedup",
        "Speed, tokens/s",
        meaning,
        record=record,
        frame=frame,
        parts=drawn,
        key=key,
    )


def _positions(record: RunRecord) -> Chart:
    meaning = (
        "How often the 1st, 2nd, 3rd … guess of a draft was accepted: of all loops with a draft, "
        "and of those in which every guess before it was. All repetitions together."
    )
    rounds = record.rounds("speculative")
    found = acceptance_by_position(rounds)
    last = max(len(found), 4)
    labels = tuple((float(n), str(n)) for n in range(1, last + 1, -(-last // 16)))
    frame = Frame(Axis(0.4, last + 0.6, labels, "place in the draft"), Axis(0, 1.05, _RATES))
    of_all = [(row.position - 0.38, row.position - 0.02, row.unconditional) for row in found]
    reached = [(row.position + 0.02, row.position + 0.38, row.conditional) for row in found]
    return _chart(
        "conditional_acceptance",
        "Acceptance by position",
        meaning,
        record=record,
        frame=frame,
        parts=[bars(frame, of_all, "kept"), bars(frame, reached, "reached")],
        key=(("of all drafts", "bar kept"), ("of those reached", "bar reached")),
    )


def _costs(record: RunRecord) -> Chart:
    meaning = (
        "What a pass of the target costs by its rows, and a step of the draft, in single steps: "
        "passes of one row, of which the baseline needs one for every token."
    )
    steps = record.costs.single_steps if record.costs else {}
    draft, own = draft_cost(record), pass_rows(record.settings, record.settings.draft_length)
    last = max([*steps, 8])
    labels = tuple((float(n), str(n)) for n in range(1, last + 1, -(-last // 16)))
    highest = max([*steps.values(), draft or 0.0, 1.0])
    frame = Frame(Axis(0.4, last + 0.6, labels, "rows of the pass"), even_axis(1.08 * highest, ""))
    columns = {width: (width - 0.4, width + 0.4, cost) for width, cost in steps.items()}
    mine = [columns.pop(own)] if own in columns else []
    parts = [bars(frame, columns.values(), "each"), bars(frame, mine, "own")]
    key = [
        ("a pass of so many rows", "bar each"),
        (f"of this run's {_rows_of(record)} = {own}", "bar own"),
    ]
    if draft is not None:
        parts.append(level(frame, draft, "draft"))
        key.append(("a draft step", "line draft"))
    return _chart(
        "verify_cost",
        "Cost of a pass, in single steps",
        meaning,
        record=record,
        frame=frame,
        parts=parts,
        key=tuple(key),
    )


def _rows_of(record: RunRecord) -> str:
    """What the rows of a pass over a whole draft are, in words."""
    return "γ + 1" if tree_shape(record.settings) is None else "trees"


def _loops(lane: LoopSeries, *, bars: bool = False) -> Axis:
    """The axis of the loops; bars need half a loop more on either side."""
    last = max(len(lane.seconds), 10)
    found = even_axis(last, "loop", whole=True)
    ticks = tuple(tick for tick in found.ticks if tick[0] >= 1)
    edge = 0.5 if bars else 0.0
    return Axis(1 - edge, last + edge, ticks, "loop")


def _chart(
    figure: str,
    title: str,
    meaning: str,
    *,
    record: RunRecord,
    frame: Frame,
    parts: list[Markup],
    key: tuple[tuple[str, str], ...],
) -> Chart:
    """A chart whose description ends with the figure that it leads to."""
    value = FIGURES[figure].value(record)
    told = NOTHING if value is None else FIGURES[figure].written(value)
    description = f"{meaning} {FIGURES[figure].label} of the whole run: {told}."
    name = f"chart-{figure.replace('_', '-')}"
    svg = picture(name, title, description, frame=frame, parts=parts)
    return Chart(title, meaning, key, svg)
