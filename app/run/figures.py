"""The figures that are shown: their names, units and definitions, one table for every place."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Literal

import msgspec

from app.run.events import Divergence, LaneName
from app.run.metrics import (
    Counts,
    Spread,
    decode_seconds,
    decode_speed,
    decode_speedup,
    leniency_share,
    request_speedup,
    same_text,
    total_counts,
    total_seconds,
)
from app.run.record import Repetition, RunRecord
from app.run.rules import is_lossy
from app.run.sizes import bytes_in_words
from app.run.tree_shape import pass_rows, tree_shape

LENIENCY = "kept_by_leniency"
"""The name of the figure that only a lossy rule has."""

OF_TREES = ("nodes_per_loop", "tested_nodes_per_loop")
"""The names of the figures that only guesses which branch have."""

NOTHING = "n/a"
"""What is shown where there is nothing to divide by."""


def decimal(value: float | None, places: int = 2) -> str:
    """A number with so many places, or that there is none."""
    return NOTHING if value is None else f"{value:.{places}f}"


def percent(share: float | None) -> str:
    """A share of 1 in per cent, or that there is none."""
    return NOTHING if share is None else f"{100 * share:.1f} %"


def size(count: int | None) -> str:
    """So many bytes in words, or that there is none."""
    return NOTHING if count is None else bytes_in_words(count)


class Figure(msgspec.Struct, frozen=True):
    """A number that is shown: what it is called, what it means, and how a record yields it."""

    name: str
    label: str
    unit: str
    definition: str
    value: Callable[[RunRecord], float | None]
    spread: Callable[[RunRecord], Spread | None] | None = None
    """The paired values behind the number, for figures that are a median of pairs."""

    def text(self, record: RunRecord) -> str:
        """The value with its unit and, where there are pairs, their range; "n/a" for none."""
        value = self.value(record)
        if value is None:
            return NOTHING
        spread = self.spread(record) if self.spread else None
        return self.written(value) + (f" ({self._range(spread)})" if spread else "")

    def written(self, value: float) -> str:
        """A value of this figure with its unit."""
        if self.unit == "%":
            return f"{100 * value:.1f} %"
        if self.unit == "×":
            return f"{value:.2f}×"
        return f"{value:.2f} {self.unit}".rstrip()

    def _range(self, spread: Spread) -> str:
        if spread.single:
            return "one pair, no spread"
        low, high = self.written(spread.low), self.written(spread.high)
        return f"median of {len(spread.values)} pairs, {low} to {high}"


def speculative_counts(record: RunRecord) -> Counts:
    """The counts of all repetitions of the speculative lane together."""
    return total_counts(record.repetitions("speculative"))


def median_of(
    record: RunRecord, lane: LaneName, measure: Callable[[Repetition], float | None]
) -> float | None:
    """The median over a lane's repetitions of a measure; None where no repetition has it."""
    found = [value for value in map(measure, record.repetitions(lane)) if value is not None]
    return median(found) if found else None


def time_to_first_token(repetition: Repetition) -> float | None:
    """Seconds from the opening of the lane until its first token existed."""
    return repetition.time_to_first_token


def decode_time(repetition: Repetition) -> float | None:
    """Seconds from the first token to the last commit; None before the first token."""
    return None if repetition.first is None else decode_seconds(repetition)


def verify_cost(record: RunRecord) -> float | None:
    """T(γ + 1) / T(1): a pass over a whole draft in single steps; None where not measured. Where
    guesses branch the pass has a row for each of them.
    """
    if record.costs is None:
        return None
    return record.costs.in_single_steps(pass_rows(record.settings, record.settings.draft_length))


def draft_cost(record: RunRecord) -> float | None:
    """A step of the draft model in single steps; None where there is none, or not measured."""
    return record.costs.draft_ratio if record.costs else None


def cut_short(record: RunRecord) -> str:
    """How a run ended before its end, and after how many tokens; empty where it did not."""
    if record.outcome in ("running", "finished"):
        return ""
    how = "Cancelled" if record.outcome == "cancelled" else "Broke off"
    first = record.lanes[0].repetitions if record.lanes else []
    tokens = total_counts(first).committed if first else 0
    return f"{how} after {tokens} token{'' if tokens == 1 else 's'}"


def agreement(record: RunRecord) -> str:
    """One sentence: do both lanes write the same text, and if not, where do they first differ?"""
    if not record.repetitions("baseline"):
        return "There is no baseline to compare the text with."
    found = same_text(record)
    if found is None and is_lossy(record.settings):
        return "The rule is lossy: the text need not be the baseline's."
    if found is None:
        return "With a temperature above 0 both lanes follow the same law, not the same text."
    if not found.compared:
        return "There is no text to compare yet."
    if found.first_difference is None:
        return f"Both lanes wrote the same {found.compared} tokens."
    where = f"The lanes first differ at token {found.first_difference + 1}"
    if record.divergence is None:
        return f"{where}."
    return f"{where}: {_judged(record.divergence)}"


Standing = Literal["lossless", "not exactly lossless", "LOSSY"]
"""What a run promises of its text, in the words that go wherever its figures go: the target's law;
the same but for the models' precision; or another law, by its rule."""


def standing(record: RunRecord) -> Standing:
    """What this run promises."""
    if is_lossy(record.settings):
        return "LOSSY"
    return "lossless" if record.lossless else "not exactly lossless"


def badge(record: RunRecord) -> str:
    """What stands beside the figures of a run that is not lossless, a lossy rule named; else ""."""
    found = standing(record)
    if found == "LOSSY":
        return f"LOSSY ({record.settings.rule})"
    return "" if found == "lossless" else found


_PROMISES: dict[Standing, str] = {
    "lossless": "Lossless: the rule keeps the target's distribution exactly.",
    "not exactly lossless": "Not exactly lossless: the models' precision does not keep the "
    "target's distribution exactly.",
    "LOSSY": "LOSSY: the rule changes the target's distribution, so the text and every figure are "
    "another model's.",
}


def promise(record: RunRecord) -> str:
    """One sentence: does the output keep the target's distribution?"""
    return _PROMISES[standing(record)]


def _judged(divergence: Divergence) -> str:
    """What the target says of the first difference, in words."""
    tokens = f"{divergence.speculative.text!r} for {divergence.baseline.text!r}"
    numbers = (
        f"{tokens}, {abs(divergence.gap):.2g} apart in the target's logits, which move by "
        f"{divergence.moved:.2g} with the widths of passes (the loop had {divergence.width} rows)"
    )
    if divergence.tie:
        return f"a numerical tie ({numbers})."
    return f"MISMATCH, which rounding does not explain ({numbers})."


def _middle(spread: Spread | None) -> float | None:
    return spread.median if spread else None


def _share(
    name: str, label: str, definition: str, *, unit: str = "%", of: Callable[[Counts], float | None]
) -> Figure:
    """A figure of the speculative lane's counts."""
    return Figure(name, label, unit, definition, lambda record: of(speculative_counts(record)))


def _of_lane(lane: LaneName) -> list[Figure]:
    """The figures of one lane's own clock."""

    def figure(
        name: str,
        label: str,
        unit: str,
        *,
        definition: str,
        of: Callable[[Repetition], float | None],
    ) -> Figure:
        return Figure(
            f"{lane}_{name}",
            f"{lane.capitalize()}: {label}",
            unit,
            definition,
            lambda record: median_of(record, lane, of),
        )

    return [
        figure(
            "decode_tokens_per_second",
            "decode speed",
            "tokens/s",
            definition="Tokens committed after the first / decode seconds; median of repetitions.",
            of=decode_speed,
        ),
        figure(
            "time_to_first_token_s",
            "time to first token",
            "s",
            definition="From the opening of the lane until the first token; median of repetitions.",
            of=time_to_first_token,
        ),
        figure(
            "decode_s",
            "decode time",
            "s",
            definition="From the first token to the last commit, on the lane's own clock; the "
            "draft's own pass over the prompt is part of it. Median of repetitions.",
            of=decode_time,
        ),
        figure(
            "total_s",
            "total time",
            "s",
            definition="Time to first token and decode time together; median of repetitions.",
            of=total_seconds,
        ),
    ]


FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        Figure(
            "decode_speedup",
            "Decode speed-up",
            "×",
            "Decode speed, speculative / baseline: the median of paired repetitions. "
            "Below 1 the baseline is faster.",
            lambda record: _middle(decode_speedup(record)),
            decode_speedup,
        ),
        Figure(
            "request_speedup",
            "Request speed-up",
            "×",
            "Total time, baseline / speculative, of pairs that ran to their end; their median.",
            lambda record: _middle(request_speedup(record)),
            request_speedup,
        ),
        _share(
            "acceptance_rate",
            "Acceptance rate",
            "Guesses accepted / guesses made. Falls as the draft length grows.",
            of=lambda counts: counts.acceptance_rate,
        ),
        _share(
            "conditional_acceptance",
            "Conditional acceptance",
            "Guesses accepted / guesses tested: those behind a rejection or a stop do not count.",
            of=lambda counts: counts.conditional_acceptance,
        ),
        _share(
            "mean_accepted_prefix",
            "Mean accepted prefix",
            "Guesses accepted / loops with a draft.",
            unit="tokens",
            of=lambda counts: counts.mean_accepted_prefix,
        ),
        _share(
            "tokens_per_loop",
            "Tokens per loop",
            "Tokens committed after the first / loops. Plain decoding has exactly 1.",
            unit="tokens",
            of=lambda counts: counts.tokens_per_loop,
        ),
        _share(
            "nodes_per_loop",
            "Guesses in a tree",
            "Guesses that branch / loops with a draft: all of a tree, which the target reads in "
            "one pass. Acceptance counts levels of it. None where guesses do not branch.",
            unit="guesses",
            of=lambda counts: counts.nodes_per_loop,
        ),
        _share(
            "tested_nodes_per_loop",
            "Guesses of a tree tested",
            "Guesses that branch and whose turn came / loops with a draft: the kept ones, and "
            "those tried beside them. None where guesses do not branch.",
            unit="guesses",
            of=lambda counts: counts.tested_nodes_per_loop,
        ),
        Figure(
            LENIENCY,
            "Kept by leniency, expected",
            "%",
            "Mean over tested guesses of max(0, chance of the rule - min(1, p/q)): how many of "
            "them only a lossy rule keeps. At temperature 0 the strict chance is whether the guess "
            "is the target's likeliest token. None for a lossless rule.",
            lambda record: leniency_share(record.repetitions("speculative")),
        ),
        *_of_lane("speculative"),
        *_of_lane("baseline"),
        Figure(
            "verify_cost",
            "Cost of a verify pass",
            "steps",
            "Seconds of a target pass over a whole draft and one row, in single steps: passes of "
            "one row. Measured after the lanes, at this run's context.",
            verify_cost,
        ),
        Figure(
            "draft_cost",
            "Cost of a draft step",
            "steps",
            "Seconds of a step of the draft model, in single steps of the target. Measured after "
            "the lanes, at this run's context.",
            draft_cost,
        ),
    )
}
"""Every figure by its name, in the order in which they are shown."""


def figures_of(record: RunRecord) -> list[Figure]:
    """The figures that a run can have, in the order in which they are shown."""
    branches = tree_shape(record.settings) is not None
    return [figure for figure in FIGURES.values() if branches or figure.name not in OF_TREES]
