"""Where two greedy lanes first differ: a near tie that widths of passes round apart, or a fault?

The target reads the text before the difference again, once at width 1 as the baseline did, once
with the very guesses of the speculative round, and once with what was written in short passes: the
lanes have not read it in passes of the same widths either, which matters where activations are
rounded to 8 bits. Guesses that branched are read as branches again: the known one, behind as many
others as there were. A near tie has a gap no larger than what the widths, and the form of a tree,
move a logit by, twice; anything else cannot be rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from app.decoding.sampling import Penalties
from app.models.block import Block
from app.models.causal_model import CausalModel
from app.models.session import MAX_CHUNK, Session
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
        width=place.width,
        tie=abs(gap) <= 2 * moved + _ROUNDINGS * step,
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """A token of the speculative lane, and the pass that it came from."""

    index: int
    start: int
    """How many tokens had been committed before the pass."""
    guesses: tuple[int, ...]
    """Those that follow each other: of a tree the branch that is known."""
    beside: int | None
    """Guesses on other branches, which are not known; None where none branched."""
    written: tuple[int, ...]

    @classmethod
    def find(cls, lane: Repetition, index: int) -> _Place:
        """The pass that committed the lane's token at `index`."""
        start = 1
        for round_ in lane.rounds:
            if start <= index < start + len(round_.committed):
                accepted = [t.id for t in round_.committed if t.status == "accepted"]
                guesses = [*accepted, *(t.id for t in round_.thrown)]
                beside = None if round_.nodes is None else round_.nodes - len(guesses)
                return cls(index, start, tuple(guesses), beside, tuple(lane.token_ids))
            start += len(round_.committed)
        return cls(index, index, (), None, tuple(lane.token_ids))

    @property
    def width(self) -> int:
        """The rows of the pass."""
        return 1 + len(self.guesses) + (self.beside or 0)

    @property
    def row(self) -> int:
        """The row of the pass that told the token."""
        behind = self.index - self.start
        return behind + (self.beside or 0) if behind else 0

    def block(self, device: torch.device) -> Block:
        """The guesses of the pass; of a tree the unknown ones first, beside the known branch."""
        if self.beside is None:
            return Block(self.guesses, device=device)
        tokens = [*[self.written[self.index]] * self.beside, *self.guesses]
        known = range(self.beside, len(tokens))
        parents = [-1] * self.beside + [-1 if at == self.beside else at - 1 for at in known]
        block = Block(device=device)
        block.branch(
            torch.tensor(tokens, device=device),
            torch.tensor(parents, device=device),
            levels=max(len(self.guesses), 1),
        )
        return block


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
    block = place.block(model.device)
    wide = _read(model, before, block)
    wide = Penalties(sampling, prompt_length).apply(wide.float(), before, block)
    return alone[0], (wide[place.row], short[0]), precision


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
