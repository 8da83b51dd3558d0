"""The rules that decide, on tables so small that every branch can be summed.

A table gives the law of the next token after each prefix of up to γ tokens; a text here is γ + 1
tokens long. A lossless rule gives the target's own law of texts, to the last bit but rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Law = NDArray[np.float64]
"""Probabilities: of a token `[vocabulary]`, or of a text `[vocabulary, …]`, one axis a token."""

Prefix = tuple[int, ...]
Table = Mapping[Prefix, Law]


@dataclass(frozen=True)
class Rule:
    """A rule: the chance to keep a guess, and the law of the token in its place if it is not kept.

    Both are asked with the target's law p, the draft's law q, and the guess.
    """

    name: str
    accept: Callable[[Law, Law, int], float]
    residual: Callable[[Law, Law, int], Law]


def point_mass(token: int, vocabulary: int) -> Law:
    """The law that is certain of one token."""
    law = np.zeros(vocabulary)
    law[token] = 1.0
    return law


def likeliest(table: Table) -> dict[Prefix, Law]:
    """The greedy table: all mass on the likeliest token, the lowest id of equals."""
    return {prefix: point_mass(int(law.argmax()), len(law)) for prefix, law in table.items()}


def normalised(weights: Law) -> Law:
    """Weights divided by their sum; zeros stay zeros."""
    total = weights.sum()
    return np.asarray(weights / total if total > 0.0 else weights)


EXACT = Rule(
    "exact",
    lambda p, q, guess: float(min(1.0, p[guess] / q[guess])),
    lambda p, q, _: normalised(np.maximum(p - q, 0.0)),
)
"""Speculative sampling (Leviathan et al. 2023, Algorithm 1; Chen et al. 2023, Algorithm 2)."""

POINT_MASS = Rule(
    "point mass",
    lambda p, _, guess: float(p[guess]),
    lambda p, _, guess: normalised(np.where(np.arange(len(p)) == guess, 0.0, p)),
)
"""The same for a guess that was certain: kept with chance p, else p without it. Reads no q."""

GREEDY = Rule(
    "greedy",
    lambda p, _, guess: float(guess == int(p.argmax())),
    lambda p, _q, _guess: point_mass(int(p.argmax()), len(p)),
)
"""A guess is kept if it is the target's likeliest token; for tables made by `likeliest`."""


def law_of_text(target: Table, length: int) -> Law:
    """The target's own law of texts of so many tokens, by the chain rule."""
    vocabulary = len(target[()])
    law = np.zeros((vocabulary,) * length)
    for text in itertools.product(range(vocabulary), repeat=length):
        law[text] = _chance(target, text, 0)
    return law


def law_of_round(rule: Rule, target: Table, draft: Table, *, draft_length: int) -> Law:
    """The law of γ + 1 tokens that one round gives, the target writing on where the round ends."""
    vocabulary = len(target[()])
    law = np.zeros((vocabulary,) * (draft_length + 1))
    for start, chance in _outcomes(rule, target, draft, draft_length=draft_length):
        missing = draft_length + 1 - len(start)
        for rest in itertools.product(range(vocabulary), repeat=missing):
            law[start + rest] += chance * _chance(target, start + rest, len(start))
    return law


def tokens_of_round(rule: Rule, target: Table, draft: Table, *, draft_length: int) -> float:
    """E[m]: the mean number of tokens that one round commits, its own one included."""
    outcomes = _outcomes(rule, target, draft, draft_length=draft_length)
    return sum(chance * len(text) for text, chance in outcomes)


def total_variation(first: Law, second: Law) -> float:
    """½ Σ |first - second|: the most by which the chance of any event differs."""
    return 0.5 * float(np.abs(first - second).sum())


def _outcomes(
    rule: Rule, target: Table, draft: Table, *, draft_length: int
) -> Iterator[tuple[Prefix, float]]:
    """Every text that a round commits, and its chance; a text may come up more than once."""
    vocabulary = len(target[()])
    for guesses in itertools.product(range(vocabulary), repeat=draft_length):
        reached = _chance(draft, guesses, 0)
        if reached == 0.0:
            continue
        for place, guess in enumerate(guesses):
            kept = guesses[:place]
            p, q = target[kept], draft[kept]
            accept = rule.accept(p, q, guess)
            if accept < 1.0:
                instead = reached * (1.0 - accept) * rule.residual(p, q, guess)
                yield from (((*kept, token), float(instead[token])) for token in range(vocabulary))
            reached *= accept
        bonus = reached * target[guesses]
        yield from (((*guesses, token), float(bonus[token])) for token in range(vocabulary))


def _chance(table: Table, text: Prefix, start: int) -> float:
    """The chance of a text's tokens from `start` on, given those before."""
    chance = 1.0
    for place in range(start, len(text)):
        chance *= float(table[text[:place]][text[place]])
    return chance
