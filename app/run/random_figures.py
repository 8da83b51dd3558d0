"""The figures of a bench of random weights: defined once, each beside the goal that it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from app.run.events import Struct
from app.run.metrics import ratio
from app.run.random_bench import RandomMeasured, Timed
from app.run.random_goals import NOT_MEASURED, Verdict, judged
from app.run.sizes import bytes_in_words

SIMULATED = "simulated acceptance"
"""What stands wherever a figure depends on guesses that were kept by chance."""

_WIDE = 5
_SCALES = {"%": 100.0, "ms": 1e3, "GB/s": 1e-9}
_Values = Sequence[float | None]


class RandomFigure(Struct, frozen=True):
    """A figure as it is shown and kept: a median, with the range of what it is the median of."""

    name: str
    label: str
    unit: str
    definition: str
    value: float | None
    low: float | None = None
    high: float | None = None
    goal: str = ""
    verdict: Verdict = ""

    @property
    def text(self) -> str:
        """The value with its unit, and the range of several."""
        if self.value is None:
            return NOT_MEASURED
        shown = self._with_unit(self.value)
        if self.low is None or self.high is None:
            return shown
        return f"{shown} ({self._number(self.low)} to {self._number(self.high)})"

    def _with_unit(self, value: float) -> str:
        if self.unit == "bytes":
            return bytes_in_words(value)
        return f"{self._number(value)}{'' if self.unit == '×' else ' '}{self.unit}".rstrip()

    def _number(self, value: float) -> str:
        scaled = _SCALES.get(self.unit, 1.0) * value
        return f"{scaled:,.1f}" if self.unit in ("%", "tokens/s") else f"{scaled:.2f}"


def random_figures(found: RandomMeasured) -> list[RandomFigure]:
    """Every figure, in the order in which they are shown."""
    return [*_of_memory(found), *_of_plain(found), *_of_passes(found), *_of_simulated(found)]


def _of_memory(found: RandomMeasured) -> Iterator[RandomFigure]:
    yield _figure(
        found,
        "bandwidth",
        "Memory's speed",
        "GB/s",
        "2 × size / time of a large copy from the device's memory to itself: each byte is read and "
        "written.",
        [found.bandwidth],
    )
    yield _figure(
        found,
        "read_bytes",
        "Weights read a token",
        "bytes",
        "All weights of the target with the scales of quantised ones, each once. The table of "
        "embeddings counts only where it is the output layer too. Keys and values do not count.",
        [found.read_bytes],
    )
    yield _figure(
        found,
        "limit",
        "Limit of plain decoding",
        "tokens/s",
        "Memory's speed / weights read a token.",
        [plain_limit(found)],
    )


def _of_plain(found: RandomMeasured) -> Iterator[RandomFigure]:
    speeds = [_speed(one) for one in found.plain]
    yield _figure(
        found,
        "plain_speed",
        "Plain decoding",
        "tokens/s",
        "Tokens after the first / seconds from the first to the last, in our loop without guesses.",
        speeds,
    )
    limit = plain_limit(found)
    yield _figure(
        found,
        "share_of_limit",
        "Share of the limit",
        "%",
        "Plain decoding / limit of plain decoding.",
        [ratio(speed, limit) for speed in speeds if speed is not None],
    )
    yield _figure(
        found,
        "generate_speed",
        "generate of transformers",
        "tokens/s",
        "Tokens / seconds of the whole call, the prompt's pass included; greedy, as it comes (a "
        "cache that grows, nothing compiled), but for cuDNN's attention, which nothing here takes.",
        [ratio(one.tokens, one.total) for one in found.generate],
    )
    pairs = zip(found.plain, found.generate, strict=True)
    yield _figure(
        found,
        "over_generate",
        "Plain decoding beside generate",
        "×",
        "Seconds of generate / seconds of our loop for as many tokens behind the same prompt, its "
        "pass included; pairs that took turns.",
        [ratio(theirs.total, ours.total) for ours, theirs in pairs],
    )
    yield _figure(
        found,
        "overhead_plain",
        "Overhead of a plain loop",
        "%",
        "Seconds of the loops outside of the models' passes / seconds of the loops. A card that "
        "waits for a pass to be given to it counts as in the pass: see how long it was idle.",
        [_overhead(one) for one in found.plain],
    )
    yield _figure(
        found,
        "idle_plain",
        "Device idle in plain decoding",
        "%",
        "1 - passes × seconds in which a kernel or a copy ran in one of them / seconds from the "
        "first token to the last.",
        [_idle_between(one, found.busy) for one in found.plain],
    )


def _of_passes(found: RandomMeasured) -> Iterator[RandomFigure]:
    passes, context = found.passes, found.context
    yield _figure(
        found,
        "pass_seconds",
        "Pass of one row, T(1)",
        "ms",
        f"Median of {found.pass_repeats} passes behind {context} tokens.",
        [passes[1]],
    )
    yield _figure(
        found,
        "wide_pass",
        f"T({_WIDE}) / T(1)",
        "",
        f"A pass of {_WIDE} rows in passes of one row; medians of passes that took turns.",
        [passes[_WIDE] / passes[1] if _WIDE in passes else None],
    )
    yield _figure(
        found,
        "idle_share",
        "Device idle in a pass",
        "%",
        "1 - seconds in which a kernel or a copy ran / T(1): gaps between launches, and what the "
        "host does before the first and behind the last.",
        [None if found.busy is None else idle_share(found.busy, passes[1])],
    )
    yield _figure(
        found,
        "draft_step",
        "Step of the draft",
        "ms",
        f"Median of passes of one row of the draft model behind {context} tokens.",
        [found.draft_step],
    )


def _of_simulated(found: RandomMeasured) -> Iterator[RandomFigure]:
    wanted = found.wanted
    at = f"α {wanted.acceptance:g}, γ {wanted.draft_length}"
    yield _figure(
        found,
        "simulated_kept",
        f"Guesses kept ({SIMULATED}, {at})",
        "%",
        "Kept / tested guesses of all repetitions. Each is kept with chance "
        f"{wanted.acceptance:g}, whatever it is (the rule synthetic).",
        [_kept(found.simulated)],
    )
    yield _figure(
        found,
        "simulated_speed",
        f"Decoding with guesses ({SIMULATED}, {at})",
        "tokens/s",
        "As plain decoding, with every step of the draft really run.",
        [_speed(one) for one in found.simulated],
    )
    pairs = zip(found.simulated, found.plain, strict=False)
    yield _figure(
        found,
        "simulated_speedup",
        f"Speed-up ({SIMULATED}, {at})",
        "×",
        "Decoding with guesses / plain decoding; pairs that took turns.",
        [_over(_speed(fast), _speed(slow)) for fast, slow in pairs],
    )
    yield _figure(
        found,
        "overhead_simulated",
        f"Overhead of a loop with guesses ({SIMULATED})",
        "%",
        "As of a plain loop.",
        [_overhead(one) for one in found.simulated],
    )


def plain_limit(found: RandomMeasured) -> float:
    """Tokens a second at which the weights of each would keep the device's memory wholly busy."""
    return found.bandwidth / found.read_bytes


def idle_share(busy: float, seconds: float) -> float:
    """The share of a pass in which the device had nothing to do, from 0 to 1."""
    return min(max(1.0 - busy / seconds, 0.0), 1.0)


def _figure(
    found: RandomMeasured,
    name: str,
    label: str,
    unit: str,
    definition: str,
    values: _Values,
) -> RandomFigure:
    """A figure of these values, beside its goal if it has one."""
    known = [value for value in values if value is not None]
    value = median(known) if known else None
    goal, verdict = judged(name, value, found)
    low, high = (min(known), max(known)) if len(known) > 1 else (None, None)
    return RandomFigure(name, label, unit, definition, value, low, high, goal, verdict)


def _speed(one: Timed) -> float | None:
    """Tokens after the first / decode seconds."""
    return None if one.decode is None else ratio(one.tokens - 1, one.decode)


def _idle_between(one: Timed, busy: float | None) -> float | None:
    """As `idle_share`, of all the time in which a plain text was written, a pass a token."""
    if busy is None or not one.decode:
        return None
    return idle_share((one.tokens - 1) * busy, one.decode)


def _overhead(one: Timed) -> float | None:
    if one.outside is None or one.decode is None:
        return None
    return ratio(one.outside, one.decode)


def _kept(found: Sequence[Timed]) -> float | None:
    return ratio(sum(one.accepted for one in found), sum(one.tested for one in found))


def _over(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None
