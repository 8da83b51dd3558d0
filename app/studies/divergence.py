"""Where two greedy lanes first differ: a near tie that widths of passes round apart, or a fault?

The target reads the text before the difference again, once at width 1 as the baseline did, once
with the very guesses of the speculative round, and once with what was written in short passes: the
lanes have not read it in passes of the same widths either, which matters where activations are
rounded to 8 bits. A near tie has a gap no larger than what the widths move a logit by, twice;
anything else cannot be rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from app.decoding.sampling import Penalties
from app.models.session import MAX_CHUNK, Block, CausalModel, Session
from app.run.events import Divergence, Token
from app.run.metrics import same_text
from app.run.record import Repetition, RunRecord

_SHORT = 7
"""Tokens of a short pass."""
_ROUNDINGS = 8
"""Steps of the logits' own precision that are allowed on top of what was seen to move."""


def find_divergence(model: CausalModel[Any], record: RunRecord) -> Divergence | None:
    """What the target says of the first difference of the first pair, or None if there is none.
    Only greedy lanes can be judged: logits do not say what shared noise has drawn.
    """
    found = same_text(record) if record.settings.sampling.greedy else None
    if found is None or found.first_difference is None:
        return None
    fast, slow = record.repetitions("speculative")[0], record.repetitions("baseline")[0]
    if found.first_difference >= min(len(fast.tokens), len(slow.tokens)):
        return None
    place = _Place.find(fast, found.first_difference)
    here, others, precision = _rows(model, record, place)
    token, baseline = fast.tokens[place.index], slow.tokens[place.index]
    gap = float(here[baseline.id] - here[token.id])
    moved = max(float((here - there).abs().max()) for there in others)
    step = precision * float(here.abs().max())
    return Divergence(
        run=record.run,
        index=place.index,
        speculative=_shown(token),
        baseline=_shown(baseline),
        gap=gap,
        moved=moved,
        width=len(place.guesses) + 1,
        tie=abs(gap) <= 2 * moved + _ROUNDINGS * step,
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """A token of the speculative lane, and the pass that it came from."""

    index: int
    start: int
    """How many tokens had been committed before the pass."""
    guesses: tuple[int, ...]
    written: tuple[int, ...]

    @classmethod
    def find(cls, lane: Repetition, index: int) -> _Place:
        """The pass that committed the lane's token at `index`."""
        start = 1
        for round_ in lane.rounds:
            if start <= index < start + len(round_.committed):
                accepted = [t.id for t in round_.committed if t.status == "accepted"]
                guesses = [*accepted, *(t.id for t in round_.thrown)]
                # Of a tree one branch is known; as many rows are read, as rounding goes by them.
                guesses += [lane.token_ids[index]] * (round_.width - 1 - len(guesses))
                return cls(index, start, tuple(guesses), tuple(lane.token_ids))
            start += len(round_.committed)
        return cls(index, index, (), tuple(lane.token_ids))


def _rows(
    model: CausalModel[Any], record: RunRecord, place: _Place
) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor], float]:
    """Logits at the difference at width 1, then in the other two ways, and their relative step."""
    sampling = record.settings.sampling
    before = [*record.prompt_ids, *place.written[: place.start]]
    text = [*record.prompt_ids, *place.written[: place.index]]
    prompt_length = len(record.prompt_ids)
    alone = _read(model, text, Block())
    precision = float(torch.finfo(alone.dtype).eps)
    alone = Penalties(sampling, prompt_length).apply(alone.float(), text, None)
    stops = range(prompt_length, len(text), _SHORT)
    short = _read(model, text, Block(), stops=stops)
    short = Penalties(sampling, prompt_length).apply(short.float(), text, None)
    block = Block(place.guesses, device=model.device)
    wide = _read(model, before, block)
    wide = Penalties(sampling, prompt_length).apply(wide.float(), before, block)
    return alone[0], (wide[place.index - place.start], short[0]), precision


def _read(
    model: CausalModel[Any], text: Sequence[int], block: Block, *, stops: Sequence[int] = ()
) -> torch.Tensor:
    """Rows behind a text's last token and each guess, the text before it read in chunks.

    A pass also ends at each of `stops`, places in the text.
    """
    session = Session(model, len(text) + len(block))
    for upto in sorted({*range(MAX_CHUNK, len(text), MAX_CHUNK), *stops}):
        session.read(text, rows=1, upto=upto)
    if len(text) > 1:
        session.read(text, rows=1, upto=len(text) - 1)
    return session.read(text, block, rows=len(block) + 1).logits


def _shown(token: Token) -> Token:
    """The token without what a reader has in the lane already."""
    return Token(id=token.id, text=token.text, status=token.status)
