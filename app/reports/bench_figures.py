"""The figures of several runs together: of a category of prompts, or of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from app.appraisal.doubt import DEFINITION as DISTURBED
from app.run.metrics import (
    chunk_gaps,
    counts,
    decode_seconds,
    lane_pairs,
    ratio,
    seconds_per_token,
    total_counts,
    total_seconds,
)
from app.run.record import Repetition, RunRecord
from app.theory import bootstrap
from app.theory.bootstrap import Pair, ratio_of_sums, speedup_of_means, speedup_of_sums
from app.theory.percentiles import Percentiles, percentiles

Measurement = tuple[str, str, RunRecord]
"""A prompt's id, its category, and the run of one of its turns."""


class Interval(msgspec.Struct, frozen=True):
    """A ratio, and its 95 % bootstrap interval over prompts and repetitions, where there is one."""

    value: float
    low: float | None
    high: float | None


class CategoryFigures(msgspec.Struct, frozen=True):
    """The figures of one category, or of all (`DEFINITIONS` says what each is)."""

    prompts: int
    turns: int
    tokens_per_loop: float | None
    acceptance_rate: float | None
    conditional_acceptance: float | None
    decode_speedup: Interval | None
    speedup_of_means: Interval | None
    request_speedup: Interval | None
    speculative_tokens_per_second: float | None
    baseline_tokens_per_second: float | None
    speculative_chunk_gaps: Percentiles | None
    baseline_chunk_gaps: Percentiles | None
    speculative_seconds_per_token: Percentiles | None
    baseline_seconds_per_token: Percentiles | None
    prompt_tokens: int
    prompt_reused: int

    @property
    def unguessed(self) -> bool:
        """Whether loops ran and no guess was made in them: a speed-up is then chance, or load."""
        return self.tokens_per_loop is not None and self.acceptance_rate is None


DEFINITIONS: dict[str, str] = {
    "Turns": "Runs of a prompt or of a turn of one; each lane runs in each repetition of it.",
    "Tokens per loop": "Tokens committed after the first / loops. Plain decoding has exactly 1.",
    "Accepted of drafted": "Guesses accepted / guesses made. Falls as the draft length grows.",
    "Accepted of tested": "Guesses accepted / guesses tested: those behind a rejection or a stop "
    "do not count.",
    "Tokens/s": "Tokens after the first / decode seconds, each summed over all runs.",
    "Decode speed-up": "Tokens/s of the speculative lane / that of the baseline.",
    "Ratio of means": "Mean decode speed of the speculative lane over prompts and repetitions / "
    "that of the baseline, as Spec-Bench averages: each prompt weighs the same.",
    "Request speed-up": "Total seconds of the baseline, prompt pass included / those of the "
    "speculative lane, over the pairs that both ran to their end.",
    "(low–high)": "95 % of resamples of the prompts, and of their repetitions (bootstrap).",
    "Disturbed": DISTURBED,
    "Chunk gap": "Seconds between two visible chunks of text: a loop, or several where some show "
    "nothing.",
    "Per token": "Seconds of a loop / tokens committed in it, one value a token.",
    "p50, p90, p95": "The smallest value that half, nine in ten, nineteen in twenty do not exceed.",
    "Step of it": "Seconds of one more guess by what guesses, measured alone; of a tree: of one "
    "more level.",
    "A guess": "The same on average in these runs, where some guesses may have cost no step.",
    "Reused": "Prompt tokens that a lane had read in the turns before and did not read again / all "
    "prompt tokens.",
}
"""What the columns mean."""


def figures(runs: Sequence[Measurement]) -> CategoryFigures:
    """The figures of these runs together."""
    fast = [lane for _, _, record in runs for lane in record.repetitions("speculative")]
    slow = [lane for _, _, record in runs for lane in record.repetitions("baseline")]
    tally = total_counts(fast)
    pairs = _pairs(runs)
    single = ratio(_speed(fast) or 0.0, _speed(slow) or 0.0)
    return CategoryFigures(
        prompts=len({prompt for prompt, _, _ in runs}),
        turns=len(runs),
        tokens_per_loop=tally.tokens_per_loop,
        acceptance_rate=tally.acceptance_rate,
        conditional_acceptance=tally.conditional_acceptance,
        decode_speedup=_interval(speedup_of_sums(pairs), single),
        speedup_of_means=_interval(speedup_of_means(pairs), single),
        request_speedup=_request_speedup(runs),
        speculative_tokens_per_second=_speed(fast),
        baseline_tokens_per_second=_speed(slow),
        speculative_chunk_gaps=_percentiles(fast, chunk_gaps),
        baseline_chunk_gaps=_percentiles(slow, chunk_gaps),
        speculative_seconds_per_token=_percentiles(fast, seconds_per_token),
        baseline_seconds_per_token=_percentiles(slow, seconds_per_token),
        prompt_tokens=sum(
            len(record.prompt_ids) * len(lane.repetitions)
            for _, _, record in runs
            for lane in record.lanes
        ),
        prompt_reused=sum(lane.prompt_reused for lane in (*fast, *slow)),
    )


def _speed(lanes: Sequence[Repetition]) -> float | None:
    tokens = sum(counts(lane).committed_after_first for lane in lanes)
    return ratio(tokens, sum(decode_seconds(lane) for lane in lanes))


def _percentiles(
    lanes: Sequence[Repetition], values: Callable[[Repetition], list[float]]
) -> Percentiles | None:
    return percentiles([value for lane in lanes for value in values(lane)])


def _interval(found: bootstrap.Interval | None, single: float | None) -> Interval | None:
    """As found; a single pair has its value, and no interval."""
    if found is not None:
        return Interval(found.value, found.low, found.high)
    return Interval(single, None, None) if single else None


def _lanes(runs: Sequence[Measurement]) -> list[tuple[str, Repetition, Repetition]]:
    """The paired repetitions of every turn, with the prompt's id."""
    return [(prompt, fast, slow) for prompt, _, record in runs for fast, slow in lane_pairs(record)]


def _pairs(runs: Sequence[Measurement]) -> list[Pair]:
    """A pair for each repetition of a prompt: its turns in which both lanes wrote, summed."""
    sums: dict[tuple[str, int], list[float]] = {}
    for prompt, fast, slow in _lanes(runs):
        sides = [(counts(one).committed_after_first, decode_seconds(one)) for one in (fast, slow)]
        if all(tokens and seconds for tokens, seconds in sides):
            total = sums.setdefault((prompt, fast.at.repetition), [0.0] * 4)
            for place, value in enumerate((*sides[0], *sides[1])):
                total[place] += value
    return [
        Pair(prompt, int(fast), fast_seconds, int(slow), slow_seconds)
        for (prompt, _), (fast, fast_seconds, slow, slow_seconds) in sums.items()
    ]


def _request_speedup(runs: Sequence[Measurement]) -> Interval | None:
    """Σ total seconds of the baseline / Σ of the speculative lane, over whole pairs."""
    sums: dict[tuple[str, int], list[float]] = {}
    for prompt, fast, slow in _lanes(runs):
        seconds = total_seconds(slow), total_seconds(fast)
        if seconds[0] and seconds[1] and fast.whole and slow.whole:
            total = sums.setdefault((prompt, fast.at.repetition), [0.0, 0.0])
            total[0] += seconds[0]
            total[1] += seconds[1]
    above, below = [slow for slow, _ in sums.values()], [fast for _, fast in sums.values()]
    found = ratio_of_sums(above, below, prompts=[prompt for prompt, _ in sums])
    return _interval(found, ratio(sum(above), sum(below)))
