"""Has a target write: many conversations side by side, each sampled at a temperature of its own."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from app.models.language_model import LanguageModel
from app.models.machine import on_device
from app.models.side_by_side import SideBySide
from app.models.tokenizer import Tokenizer
from app.training.prompts import Asked
from app.training.texts import Text, text_of

TEMPERATURES = (0.0, 0.0, 0.5, 0.5, 0.8, 0.8, 1.0)
"""Each text takes one of these: draft heads are used greedily and with sampling."""

NEW_TOKENS = 192
LONGEST = 640
_AHEAD = 4
"""Prompts that are sorted by length at a time, as a multiple of the rows: neighbours in a pass then
have like lengths, and the longest makes none of them wait."""
_LOOP = 64
"""So many tokens that only repeat themselves end a text: more of them would teach nothing."""

Pause = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """How texts are written."""

    seed: int
    rows: int = 64
    new_tokens: int = NEW_TOKENS
    """Most tokens that a text may get."""
    longest: int = LONGEST
    """Most tokens of prompt and text; longer prompts are left out."""
    temperatures: Sequence[float] = TEMPERATURES


@dataclass(frozen=True, slots=True)
class Written:
    """A conversation, and the text that came of it."""

    asked: Asked
    text: Text


@dataclass(slots=True)
class _Row:
    """A text under way."""

    asked: Asked
    ids: list[int]
    prompt: int
    temperature: float
    chance: random.Random
    features: list[Tensor]
    best: list[int] = field(default_factory=list)


class Writer:
    """Writes texts with one model, until the conversations end or nobody asks for more."""

    def __init__(
        self, model: LanguageModel, tokenizer: Tokenizer, end_ids: Sequence[int], plan: Plan
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._end_ids = frozenset(end_ids)
        self._plan = plan
        self._begun = 0

    def answers(self, asked: Iterator[Asked], pause: Pause) -> Iterator[Written]:
        """Each conversation's answer, in the order in which they end. Deterministic on a CPU.

        Raises Problem when the device's memory is exhausted, Cancelled when `pause` does.
        """
        waiting = self._encoded(asked)
        sequences = SideBySide(self._model, self._plan.rows, self._plan.longest)
        rows: list[_Row | None] = [None] * self._plan.rows
        more = True
        while more or any(rows):
            for place, row in enumerate(rows):
                if row is None and more:
                    pause()
                    rows[place] = self._begin(sequences, place, waiting)
                    more = rows[place] is not None
            if not any(rows):
                return
            pause()
            self._step(sequences, rows)
            for place, row in enumerate(rows):
                if row is not None and self._ended(row):
                    yield Written(row.asked, _whole(row))
                    rows[place] = None
                    sequences.rest(place)

    def _encoded(self, asked: Iterator[Asked]) -> Iterator[tuple[Asked, list[int]]]:
        """Conversations as ids, those that are too long left out, sorted by length in batches."""
        batch: list[tuple[Asked, list[int]]] = []
        for one in asked:
            ids = self._tokenizer.encode_prompt(one.prompt, system=one.system, earlier=one.earlier)
            if len(ids) + self._plan.new_tokens <= self._plan.longest:
                batch.append((one, list(ids)))
            if len(batch) == _AHEAD * self._plan.rows:
                yield from sorted(batch, key=_length)
                batch = []
        yield from sorted(batch, key=_length)

    def _begin(
        self, sequences: SideBySide, place: int, waiting: Iterator[tuple[Asked, list[int]]]
    ) -> _Row | None:
        """The next conversation in this row, its first token drawn; None if there is no more."""
        one, ids = next(waiting, (None, []))
        if one is None:
            return None
        chance = random.Random(f"{self._plan.seed}, {self._begun}")
        self._begun += 1
        logits, features = sequences.begin(place, ids)
        temperature = chance.choice(list(self._plan.temperatures))
        row = _Row(one, ids, len(ids), temperature, chance, [features])
        self._draw([row], logits)
        return row

    def _step(self, sequences: SideBySide, rows: Sequence[_Row | None]) -> None:
        """One more token of every row."""
        fed = on_device([row.ids[-1] if row else 0 for row in rows], torch.long, self._model.device)
        logits, features = sequences.step(fed)
        active = [place for place, row in enumerate(rows) if row is not None]
        for place in active:
            rows[place].features.append(features[place : place + 1])  # type: ignore[union-attr]
        if len(active) < len(rows):
            logits = logits[on_device(active, torch.long, self._model.device)]
        self._draw([row for row in rows if row is not None], logits)

    def _draw(self, rows: Sequence[_Row], logits: Tensor) -> None:
        """Appends to each row its next id, drawn from its row of logits [rows, width]."""
        best = logits.argmax(dim=-1)
        drawn = _sampled(logits, rows)
        for row, likeliest, other in zip(rows, best.tolist(), drawn.tolist(), strict=True):
            row.best.append(likeliest)
            row.ids.append(likeliest if row.temperature == 0 else other)

    def _ended(self, row: _Row) -> bool:
        written = len(row.ids) - row.prompt
        return (
            row.ids[-1] in self._end_ids
            or written > self._plan.new_tokens
            or (written % 16 == 0 and written >= _LOOP and _repeats(row.ids[-_LOOP:]))
        )


def _sampled(logits: Tensor, rows: Sequence[_Row]) -> Tensor:
    """An id drawn from each row's law at its temperature, by inversion: [rows]."""
    temperatures = [row.temperature or 1.0 for row in rows]
    divisors = on_device(temperatures, torch.float32, logits.device)
    sums = torch.softmax(logits.float() / divisors[:, None], dim=-1).cumsum(dim=-1)
    draws = on_device([row.chance.random() for row in rows], torch.float32, logits.device)
    ids = torch.searchsorted(sums, draws[:, None] * sums[:, -1:])[:, 0]
    return ids.clamp_max(logits.shape[-1] - 1)


def _repeats(ids: Sequence[int]) -> bool:
    """Whether the ids only repeat themselves, with a period of at most half of them."""
    return any(ids[period:] == ids[:-period] for period in range(1, len(ids) // 2 + 1))


def _whole(row: _Row) -> Text:
    """The text of a row, without its last id, which was never fed."""
    features = torch.cat(row.features).cpu()
    return text_of(row.ids[:-1], row.best, features, prompt=row.prompt)


def _length(encoded: tuple[Asked, list[int]]) -> int:
    return len(encoded[1])
