"""Every draft that a proposer can make, by enumeration of its draws: for tests of small worlds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch

from app.decoding.contracts import Read, Unread
from app.models.session import Reading
from app.run.settings import Sampling
from oracles import GAMMA, VOCABULARY, Table

Drawn = tuple[tuple[int, ...], float, torch.Tensor | None]
"""A draft's guesses, its probability, and the laws that the proposer declares."""


class TableDraft:
    """A draft model that is a table of the laws behind a prompt; notes the rows of each pass."""

    def __init__(self, table: Table, prompt: int) -> None:
        self.table = table
        self.prompt = prompt
        self.widths: list[int] = []

    def answer(self, request):
        if isinstance(request, Unread):
            return 1
        assert isinstance(request, Read)
        ids = [*request.text[self.prompt : request.upto], *request.block.ids]
        self.widths.append(request.rows)
        ends = range(len(ids) - request.rows + 1, len(ids) + 1)
        return Reading(torch.stack([self.law(tuple(ids[:end])).log().float() for end in ends]))

    def law(self, prefix: tuple[int, ...]) -> torch.Tensor:
        """The table ends with the last guess; what would follow it is never used."""
        return self.table.get(prefix, torch.full((VOCABULARY,), 0.25, dtype=torch.float64))


def warp_of(table: Table):
    """`warp` in fp64, so that laws are exact: scores are those of a row of this table."""
    rows = [law.double() for law in table.values()]

    def warped(scores: torch.Tensor, sampling: Sampling) -> torch.Tensor:
        return torch.stack([_warped(_known(row, rows), sampling) for row in scores])

    return warped


def own_law(law: torch.Tensor, temperature: float) -> torch.Tensor:
    """A law at another temperature, by its definition."""
    powers = law ** (1.0 / temperature)
    return powers / powers.sum()


def all_drafts(proposer, model: TableDraft, text, monkeypatch, *, laws: Table) -> Iterator[Drawn]:
    """Every draft of GAMMA guesses behind the text, whose draws follow these laws.

    A draw matters only by the interval it lies in, between two sums of any law that its slot may
    have; one of each interval is taken.
    """
    cuts = [_cuts(laws, slot) for slot in range(GAMMA)]
    spans = [list(itertools.pairwise(found)) for found in cuts]
    for chosen in itertools.product(*spans):
        middles = [(low + high) / 2 for low, high in chosen]
        weight = 1.0
        for low, high in chosen:
            weight *= high - low
        monkeypatch.setattr(
            "app.decoding.proposers.guess_draws.draw",
            lambda seed, stream, round_, slot, middles=middles: middles[slot],
        )
        draft = answered(proposer.propose(text, limit=GAMMA, round_=0), model)
        assert len(draft) == GAMMA
        yield tuple(draft.block.ids), weight, draft.law


def answered(asking, reader):
    """The draft of a proposer whose requests this reader answers."""
    answer = None
    while True:
        try:
            answer = reader.answer(asking.send(answer))
        except StopIteration as done:
            return done.value


def _cuts(laws: Table, slot: int) -> list[float]:
    found = {0.0, 1.0}
    for prefix, law in laws.items():
        if len(prefix) == slot:
            found |= set((law.cumsum(0) / law.sum())[:-1].tolist())
    return sorted(found)


def _known(scores: torch.Tensor, rows: list[torch.Tensor]) -> torch.Tensor:
    return min(rows, key=lambda row: float((scores.exp().double() - row).abs().sum()))


def _warped(law: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    assert (sampling.top_p, sampling.min_p) == (1.0, 0.0)
    if sampling.top_k:
        law = law.where(law >= torch.topk(law, sampling.top_k).values[-1], 0.0)
    return own_law(law, sampling.temperature)
