"""Checks whose answers are known independently: by enumeration, by definition, by a copy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

import torch

from app.decoding.contracts import Draft, Draws, TargetRows
from app.models.block import Block
from app.models.session import Session
from app.run.identities import violations
from app.run.metrics import counts
from app.run.settings import Sampling
from toys import Sessions, draft_model, make_lane, run, tiny_llama

VOCABULARY = 4
GAMMA = 2
LENGTH = GAMMA + 1

Table = dict[tuple[int, ...], torch.Tensor]
"""The law of the next token after each prefix."""


def random_table(seed: int, *, zeros: bool = False) -> Table:
    """A random law for every prefix of up to GAMMA tokens; some without some of the tokens."""
    generator = torch.Generator().manual_seed(seed)
    table = {}
    for size in range(LENGTH):
        for prefix in itertools.product(range(VOCABULARY), repeat=size):
            weights = torch.rand(VOCABULARY, generator=generator, dtype=torch.float64) ** 3
            if zeros:
                weights[int(torch.randint(VOCABULARY, (1,), generator=generator))] = 0.0
            table[prefix] = weights / weights.sum()
    return table


def law_of_text(table: Table) -> dict[tuple[int, ...], float]:
    """The target's own law of LENGTH tokens, by the chain rule."""
    law = {}
    for text in itertools.product(range(VOCABULARY), repeat=LENGTH):
        weight = 1.0
        for place, token in enumerate(text):
            weight *= float(table[text[:place]][token])
        law[text] = weight
    return law


def law_of_rounds(
    verifier,
    target: Table,
    drawn: Table | Callable[[Sequence[int]], Sequence[int]],
    declared: Table | None = None,
) -> dict[tuple[int, ...], float]:
    """The law of LENGTH tokens that one round and plain tokens after it yield, every branch summed.

    `drawn` is the law the guesses come from, or a function that says them for certain; `declared`
    is what the verifier is told, the drawn law unless a fault is planted.
    """
    return law_of_drafts(verifier, target, _drafts(drawn, declared))


def law_of_drafts(
    verifier,
    target: Table,
    drafts: Iterable[tuple[tuple[int, ...], float, torch.Tensor | None]],
) -> dict[tuple[int, ...], float]:
    """The same for drafts of GAMMA guesses, each with its probability and what the verifier is told
    of the laws of its guesses.
    """
    law: dict[tuple[int, ...], float] = dict.fromkeys(law_of_text(target), 0.0)
    for guesses, weight, laws in drafts:
        if weight == 0.0:
            continue
        rows = torch.stack([target[guesses[:place]] for place in range(LENGTH)])
        for text, chance in _round_outcomes(verifier, guesses, laws, rows):
            for rest in itertools.product(range(VOCABULARY), repeat=LENGTH - len(text)):
                whole = (*text, *rest)
                tail = 1.0
                for place in range(len(text), LENGTH):
                    tail *= float(target[whole[:place]][whole[place]])
                law[whole] += weight * chance * tail
    return law


def total_variation(first: dict, second: dict) -> float:
    """Half the sum of absolute differences."""
    return 0.5 * sum(abs(first[key] - second[key]) for key in first)


def rows_with(law: torch.Tensor) -> TargetRows:
    """The target's rows [drafted + 1, width], drawn from exactly this law."""
    rows = TargetRows(law.log(), Sampling(temperature=1.0))
    rows.__dict__["law"] = law
    return rows


def distance(verifier, seed: int, *, kind: str, zeros: bool = False, fault=None) -> float:
    """Total variation between a rule's output and the target, for one random pair of laws."""
    target = random_table(seed, zeros=zeros)
    other = random_table(seed + 1000)
    if kind == "point mass":
        drawn = {prefix: int(law.argmax()) for prefix, law in other.items()}
        rounds = law_of_rounds(verifier, target, lambda prefix: drawn[tuple(prefix)])
    else:
        if kind == "argmax":
            other = {prefix: _point_mass(law) for prefix, law in other.items()}
        declared = fault(other) if fault else None
        rounds = law_of_rounds(verifier, target, other, declared)
    return total_variation(rounds, law_of_text(target))


def _point_mass(law: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.one_hot(law.argmax(), VOCABULARY).double()


def _drafts(drawn, declared):
    """Every draft, its probability, and the laws that the verifier is told."""
    if callable(drawn):
        guesses: tuple[int, ...] = ()
        for _ in range(GAMMA):
            guesses = (*guesses, drawn(guesses))
        yield guesses, 1.0, None
        return
    for guesses in itertools.product(range(VOCABULARY), repeat=GAMMA):
        weight = 1.0
        for place, token in enumerate(guesses):
            weight *= float(drawn[guesses[:place]][token])
        told = declared or drawn
        yield guesses, weight, torch.stack([told[guesses[:i]] for i in range(GAMMA)])


def _round_outcomes(verifier, guesses, laws, rows):
    """Every text that the rule makes of a draft, and its probability.

    The rule is a pure function of its draws: each accept draw matters only by the side of the
    accept probability it lies on, and the next token's law is what the rule says it is.
    """
    draft = Draft(Block(guesses), laws)
    target = rows_with(rows)
    accept = _sides(verifier, draft, target)
    for pattern in itertools.product((True, False), repeat=GAMMA):
        chance, draws = 1.0, []
        for kept, a in zip(pattern, accept, strict=True):
            chance *= a if kept else 1.0 - a
            draws.append(a / 2 if kept else (1.0 + a) / 2)
        if chance == 0.0:
            continue
        verdict = verifier.verify(
            draft, target, Draws(torch.tensor(draws, dtype=torch.float64), torch.tensor([0.5]))
        )
        kept = int(verdict.accepted)
        for token in range(VOCABULARY):
            share = float(verdict.next_law[token])
            if share:
                yield (*guesses[:kept], token), chance * share


def _sides(verifier, draft, target) -> list[float]:
    """Below which draw each guess passes by itself; FLy's own chance is told of several draws."""
    half = torch.full((GAMMA,), 0.5, dtype=torch.float64)
    verdict = verifier.verify(draft, target, Draws(half, torch.tensor([0.5])))
    alone = verdict.strict_probability if verifier.name == "fly" else verdict.accept_probability
    return [float(a) for a in alone]


def copy_draft_repetition(gamma: int, *, rounds: int = 40, session=Session):
    """Decodes 1 + rounds * (gamma + 1) tokens with a draft that is a copy of its target."""
    target, draft = tiny_llama(3), tiny_llama(3)
    lane = make_lane(
        [5, 9, 2],
        proposer=draft_model(width=64),
        draft_length=gamma,
        max_new_tokens=1 + rounds * (gamma + 1),
        decode_ids=lambda ids: "".join(chr(0x100 + token) for token in ids),
    )
    reader = Sessions({"target": session(target, 600), "draft": session(draft, 600)})
    return run(lane, reader), reader


def check_copy_draft(gamma: int, *, rounds: int = 40, session=Session) -> None:
    """Every guess is accepted in every round, and a round commits exactly gamma + 1 tokens."""
    repetition, _ = copy_draft_repetition(gamma, rounds=rounds, session=session)
    assert violations(repetition) == []
    tally = counts(repetition)
    assert tally.acceptance_rate == 1.0
    assert tally.tokens_per_loop == gamma + 1
    assert [len(round_.committed) for round_ in repetition.rounds] == [gamma + 1] * rounds
