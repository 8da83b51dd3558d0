"""Intervals for measured ratios, by resampling what was measured.

Prompts are drawn with replacement, then, within every prompt drawn, its repetitions: a hierarchical
bootstrap with percentile intervals (Davison and Hinkley 1997, §3.8 and §5.3). What was measured is
taken for a sample of what could have been, so a handful of prompts or repetitions gives an interval
that is too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DRAWS = 10_000
"""Resamples behind an interval."""

LEVEL = 0.95
"""The share of resamples that an interval holds."""

_BLOCK = 500
"""Resamples made at once, which bounds the memory that they take."""


@dataclass(frozen=True)
class Interval:
    """A figure of what was measured, and the range in which most of its resamples lie."""

    value: float
    low: float
    high: float
    level: float = LEVEL


@dataclass(frozen=True)
class Pair:
    """One repetition of one prompt in both lanes: tokens after the first, and decode seconds."""

    prompt: Hashable
    speculative_tokens: int
    speculative_seconds: float
    baseline_tokens: int
    baseline_seconds: float

    @property
    def speeds(self) -> tuple[float, float] | None:
        """Tokens a second of the speculative lane and of the baseline; None unless both wrote."""
        counted = (
            self.speculative_tokens,
            self.speculative_seconds,
            self.baseline_tokens,
            self.baseline_seconds,
        )
        if min(counted) <= 0:
            return None
        return counted[0] / counted[1], counted[2] / counted[3]


def speedup_of_sums(pairs: Sequence[Pair], *, seed: int = 0, draws: int = DRAWS) -> Interval | None:
    """(Σ tokens / Σ seconds) of the speculative lane by that of the baseline.

    None for fewer than two pairs, as for every interval here: one pair has no spread.
    """
    columns = np.array(
        [
            [
                pair.speculative_tokens,
                pair.baseline_seconds,
                pair.speculative_seconds,
                pair.baseline_tokens,
            ]
            for pair in pairs
        ],
        dtype=np.float64,
    ).reshape(-1, 4)

    def ratio(weights: Floats) -> Floats:
        sums = weights @ columns
        return np.asarray(sums[:, 0] * sums[:, 1] / (sums[:, 2] * sums[:, 3]))

    return interval(ratio, [pair.prompt for pair in pairs], seed=seed, draws=draws)


def speedup_of_means(
    pairs: Sequence[Pair], *, seed: int = 0, draws: int = DRAWS
) -> Interval | None:
    """Mean tokens a second of the speculative lane by the mean of the baseline (Spec-Bench, Xia et
    al. 2024): every pair weighs the same, but those in which a lane wrote nothing do not count.
    """
    known = [(pair.prompt, *pair.speeds) for pair in pairs if pair.speeds]
    return ratio_of_sums(
        [speculative for _, speculative, _ in known],
        [baseline for _, _, baseline in known],
        prompts=[prompt for prompt, _, _ in known],
        seed=seed,
        draws=draws,
    )


def median_speedup(pairs: Sequence[Pair], *, seed: int = 0, draws: int = DRAWS) -> Interval | None:
    """The median of the pairs' speed-ups, without those in which a lane wrote nothing."""
    known = [(pair.prompt, *pair.speeds) for pair in pairs if pair.speeds]
    return median(
        [speculative / baseline for _, speculative, baseline in known],
        prompts=[prompt for prompt, _, _ in known],
        seed=seed,
        draws=draws,
    )


def ratio_of_sums(
    above: Sequence[float],
    below: Sequence[float],
    *,
    prompts: Sequence[Hashable],
    seed: int = 0,
    draws: int = DRAWS,
) -> Interval | None:
    """Σ above / Σ below, where place i of each belongs to one repetition of prompt i."""
    columns = np.array([above, below], dtype=np.float64).T

    def ratio(weights: Floats) -> Floats:
        sums = weights @ columns
        return np.asarray(sums[:, 0] / sums[:, 1])

    return interval(ratio, prompts, seed=seed, draws=draws)


def median(
    values: Sequence[float], *, prompts: Sequence[Hashable], seed: int = 0, draws: int = DRAWS
) -> Interval | None:
    """The median of values, where place i belongs to one repetition of prompt i."""
    order = np.argsort(np.asarray(values, dtype=np.float64), kind="stable")
    ascending = np.asarray(values, dtype=np.float64)[order]

    def middle(weights: Floats) -> Floats:
        reached = np.cumsum(weights[:, order], axis=1)
        total = reached[:, -1:]
        lower = np.argmax(reached > np.floor((total - 1) / 2), axis=1)
        upper = np.argmax(reached > np.floor(total / 2), axis=1)
        return np.asarray((ascending[lower] + ascending[upper]) / 2)

    return interval(middle, prompts, seed=seed, draws=draws)


def interval(
    statistic: Callable[[Floats], Floats],
    prompts: Sequence[Hashable],
    *,
    seed: int = 0,
    draws: int = DRAWS,
) -> Interval | None:
    """A statistic, and the middle 95 % of it over resamples.

    `statistic` maps weights `[resamples, pairs]`, how often each pair was drawn, to values
    `[resamples]`; `prompts` says which prompt each pair belongs to. None where there are fewer than
    two pairs, or nothing to divide by; resamples with nothing to divide by are left out.
    """
    if len(prompts) < 2:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(statistic(np.ones((1, len(prompts)), dtype=np.float64))[0])
        found = np.concatenate([statistic(weights) for weights in _resamples(prompts, seed, draws)])
    found = found[np.isfinite(found)]
    if not math.isfinite(value) or not len(found):
        return None
    low, high = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(value, float(low), float(high))


def _resamples(prompts: Sequence[Hashable], seed: int, draws: int) -> Iterator[Floats]:
    """How often each pair is drawn, `[resamples, pairs]`, block by block.

    A prompt with R repetitions that is drawn c times yields c·R draws among its repetitions.
    """
    generator = np.random.default_rng(seed)
    places: dict[Hashable, list[int]] = {}
    for place, prompt in enumerate(prompts):
        places.setdefault(prompt, []).append(place)
    even = np.full(len(places), 1.0 / len(places))
    for start in range(0, draws, _BLOCK):
        drawn = generator.multinomial(len(places), even, size=min(_BLOCK, draws - start))
        weights = np.empty((len(drawn), len(prompts)), dtype=np.float64)
        for times, own in zip(drawn.T, places.values(), strict=True):
            share = np.full(len(own), 1.0 / len(own))
            weights[:, own] = generator.multinomial(times * len(own), share)
        yield weights
