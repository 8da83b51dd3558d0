"""Lines, bars and axes as SVG; a number that does not exist leaves a gap."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
from markupsafe import Markup

WIDTH, HEIGHT = 500, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 10, 38

MOST_POINTS = 400
"""A curve is drawn with at most about so many points."""

MOST_BARS = 120
"""Loops beyond this many share bars."""

Point = tuple[float, float | None]


class Axis(msgspec.Struct, frozen=True):
    """The range of one direction, and where it is labelled."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    name: str = ""


class Frame(msgspec.Struct, frozen=True):
    """The field that a chart is drawn in."""

    x: Axis
    y: Axis

    def across(self, value: float) -> float:
        """The place of a value from left to right."""
        return _LEFT + _share(self.x, value) * (WIDTH - _LEFT - _RIGHT)

    def up(self, value: float) -> float:
        """The place of a value from top to bottom."""
        return HEIGHT - _BOTTOM - _share(self.y, value) * (HEIGHT - _TOP - _BOTTOM)


def curve(frame: Frame, points: Sequence[Point], look: str) -> Markup:
    """A line through the points that exist, broken where one does not."""
    steps, broken = [], True
    for x, y in thinned(points):
        if y is None or not (math.isfinite(x) and math.isfinite(y)):
            broken = True
            continue
        steps.append(f"{'M' if broken else 'L'}{frame.across(x):.1f} {frame.up(y):.1f}")
        broken = False
    if len(steps) == 1:
        steps.append("h1.5")  # a line of no length would not be seen
    return _path("".join(steps), f"line {look}")


def bars(frame: Frame, heights: Iterable[tuple[float, float, float | None]], look: str) -> Markup:
    """Bars from zero, each from a left to a right edge, as high as its value."""
    steps = []
    for left, right, height in heights:
        if height is not None and math.isfinite(height):
            start, end = frame.across(left), frame.across(right)
            top, ground = frame.up(height), frame.up(0)
            steps.append(f"M{start:.1f} {ground:.1f}V{top:.1f}H{end:.1f}V{ground:.1f}Z")
    return _path("".join(steps), f"bar {look}")


def marks(frame: Frame, points: Iterable[tuple[float, float]], look: str) -> Markup:
    """A small triangle above each point."""
    steps = [f"M{frame.across(x) - 3:.1f} {frame.up(y) - 3:.1f}h6l-3 -5Z" for x, y in points]
    return _path("".join(steps), f"bar {look}")


def level(frame: Frame, value: float, look: str) -> Markup:
    """A line across the whole field."""
    start, end, at = frame.across(frame.x.low), frame.across(frame.x.high), frame.up(value)
    return _path(f"M{start:.1f} {at:.1f}H{end:.1f}", f"line {look}")


def picture(
    name: str, title: str, description: str, *, frame: Frame, parts: Iterable[Markup]
) -> Markup:
    """A whole chart, with words for those who do not see it."""
    whole = Markup(
        '<svg viewBox="0 0 {w} {h}" role="img" aria-labelledby="{name}-title {name}-desc">'
        '<title id="{name}-title">{title}</title><desc id="{name}-desc">{desc}</desc>{inside}</svg>'
    )
    inside = Markup("").join([_grid(frame), *parts])
    words = {"name": name, "title": title, "desc": description}
    return whole.format(w=WIDTH, h=HEIGHT, inside=inside, **words)


def shared_bars(heights: Sequence[float]) -> list[tuple[float, float, float]]:
    """A bar a value, from place 1 on; many values share bars, which show their mean."""
    each = max(1, math.ceil(len(heights) / MOST_BARS))
    found = []
    for start in range(0, len(heights), each):
        group = heights[start : start + each]
        edge, gap = start + 0.5, 0.1 * len(group)
        found.append((edge + gap, edge + len(group) - gap, sum(group) / len(group)))
    return found


def thinned(points: Sequence[Point]) -> Sequence[Point]:
    """At most about MOST_POINTS of the points, evenly; the last is always there."""
    step = max(1, math.ceil(len(points) / MOST_POINTS))
    return points[(len(points) - 1) % step :: step] if points else points


def even_axis(high: float, name: str, *, low: float = 0.0, whole: bool = False) -> Axis:
    """An axis with labels at round numbers; at whole ones only, if asked for."""
    high = high if math.isfinite(high) and high > low else low + 1
    step = _round_step((high - low) / 6)
    step = max(1.0, round(step)) if whole else step
    first = math.ceil(low / step)
    ticks = [n * step for n in range(first, math.floor(high / step) + 1)]
    return Axis(low, high, tuple((tick, f"{tick:g}") for tick in ticks), name)


def _round_step(least: float) -> float:
    """The smallest of 1, 2, 5, 10 … that is at least this."""
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= least * 0.999)


def _share(axis: Axis, value: float) -> float:
    """How far along the axis a value lies, and never beyond its ends."""
    return min(max((value - axis.low) / (axis.high - axis.low), 0.0), 1.0)


def _path(steps: str, look: str) -> Markup:
    return Markup('<path class="{}" d="{}"/>').format(look, steps) if steps else Markup("")


def _grid(frame: Frame) -> Markup:
    """Faint lines at the labels of the left axis, both axes, and their labels."""
    label = Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>')
    lines = [level(frame, at, "grid") for at, _ in frame.y.ticks]
    lines += [level(frame, frame.y.low, "axis")]
    lines += [label.format("left", _LEFT - 6, frame.up(at) + 4, say) for at, say in frame.y.ticks]
    below = HEIGHT - _BOTTOM
    lines += [label.format("low", frame.across(at), below + 15, say) for at, say in frame.x.ticks]
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    lines.append(label.format("low", middle, below + 32, frame.x.name))
    return Markup("").join(lines)
