"""A draft's whole chain of guesses as one run over tensors: each is fed before the next is made.

The first pass reads the one or two tokens that are new of the text, padded to two rows where it is
recorded; a chain of n guesses goes on with n - 1 passes of one row, at places that are tensors too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from app.library.memory import LONGEST_CHAIN
from app.models.fixed.fixed_pass import PassRows, fixed_pass
from app.models.fixed.memory import PlacedLayers
from app.models.fixed.recorder import Recorder, Recordings, Run
from app.models.machine import on_device
from app.models.picking import ChainGuesses, Picked, Picking, Told

if TYPE_CHECKING:
    from app.models.language_model import LanguageModel

FIRST = 2
"""Rows of a chain's first pass where it is padded."""
LONGEST = LONGEST_CHAIN
"""Guesses of a chain at most."""


class ChainShape(NamedTuple):
    """All that the host decides of a chain."""

    guesses: int
    keys: int
    """Keys that attention sums over, in each pass."""
    how: Picking
    first: int
    """Rows of its first pass, padded ones included; 0 where it begins with none."""
    depth: int | None = None
    """How many of the model's layers guess, the first ones; None for all."""


Compute = Callable[[ChainShape, Tensor, Tensor | None], ChainGuesses]
"""Makes a chain of a shape, at draws [at least count] and behind used tokens, as `Picking.pick`."""


def guess_chain(
    model: LanguageModel,
    memory: PlacedLayers,
    rows: Mapping[int, PassRows],
    shape: ChainShape,
    draws: Tensor,
    used: Tensor | None,
) -> ChainGuesses:
    """Makes a chain behind what the rows of its first pass have been told of; `rows` are those of a
    width.

    Uses only tensors that stay where they are, as `fixed_pass`.
    """
    first, step = rows[shape.first], rows[1]
    end = first.start + first.count
    told = partial(fixed_pass, model, memory, keys=shape.keys, layers=None, depth=shape.depth)
    row = told(first).logits.index_select(0, first.count - 1)[0]
    made = [shape.how.pick(row, draws[0], used)]
    for place in range(1, shape.guesses):
        step.ids.copy_(shape.how.fed(made[-1].token).reshape(1))
        step.start.copy_((end + (place - 1))[0])
        row = told(step).logits[0]
        made.append(shape.how.pick(row, draws[place], used))
    return as_chain(made, shape.how)


def as_chain(made: list[Picked], how: Picking) -> ChainGuesses:
    """Guesses one behind the other."""
    ids = torch.stack([one.token for one in made])
    fed = torch.stack([how.fed(one.token) for one in made])
    laws = [one.law for one in made if one.law is not None]
    peaks = torch.stack([one.peak for one in made])
    return ChainGuesses(ids, fed, torch.stack(laws) if laws else None, peaks)


class Chains:
    """The chains that one room offers: computed each time, or recorded and replayed."""

    def __init__(self, compute: Compute, device: torch.device, recorder: Recorder | None) -> None:
        self._compute = compute
        self._recorder = recorder
        self._recorded: Recordings[ChainShape, tuple[Run, ChainGuesses]] = Recordings()
        self._left: dict[Picking, ChainGuesses] = {}
        """Where chains leave what they yield, by how it is taken: rows for the longest of them."""
        self._device = device
        self._used: dict[Picking, Tensor | None] = {}
        """Where chains are told of used tokens, and mark what they guess, by how it is taken."""
        self._draws = torch.full((LONGEST,), 0.5, dtype=_draw_type(device), device=device)

    def holds(self, shape: ChainShape) -> bool:
        """Whether such a chain can be had now."""
        if self._recorder is None:
            return 0 < shape.guesses <= LONGEST
        return shape in self._recorded

    def answer(self, shape: ChainShape, told: Told) -> ChainGuesses:
        """The chain behind what has been told; what it marks as used is its own."""
        used = self._used_by(shape.how)
        if told.draws:
            draws = on_device(told.draws, self._draws.dtype, self._device)
            self._draws[: shape.guesses].copy_(draws)
        if used is not None:
            used.zero_() if told.used is None else used.copy_(told.used)
        if self._recorder is None:
            return self._compute(shape, self._draws, used)
        replay, left = self._recorded[shape]
        replay()
        laws = None if left.laws is None else left.laws.clone()
        return ChainGuesses(left.ids.clone(), left.fed.clone(), laws, left.peaks.clone())

    def prepare(self, shapes: Sequence[ChainShape], advance: Callable[[int, int], None]) -> str:
        """Records these, the longest first, as `Recordings.complete` has it."""
        longest_first = sorted(set(shapes), key=_longest_first)
        return self._recorded.complete(longest_first, self._record, advance)

    def _record(self, shape: ChainShape) -> None:
        assert self._recorder is not None
        out, used = self._left_by(shape), self._used_by(shape.how)

        def run() -> None:
            for made, place in zip(self._compute(shape, self._draws, used), out, strict=True):
                if made is not None and place is not None:
                    place.copy_(made)

        self._recorded[shape] = (self._recorder.record(run), out)

    def _left_by(self, shape: ChainShape) -> ChainGuesses:
        """Where a chain of this shape leaves what it yields."""
        held = self._left.get(shape.how)
        if held is None or len(held.ids) < shape.guesses:
            first = self._compute(shape, self._draws, self._used_by(shape.how))
            held = self._left[shape.how] = _like(first)
        laws = None if held.laws is None else held.laws[: shape.guesses]
        count = shape.guesses
        return ChainGuesses(held.ids[:count], held.fed[:count], laws, held.peaks[:count])

    def _used_by(self, how: Picking) -> Tensor | None:
        """Where chains of guesses that are taken so are told of used tokens."""
        if how not in self._used:
            self._used[how] = how.none_used(self._device)
        return self._used[how]


def _longest_first(shape: ChainShape) -> tuple[int, int]:
    return -shape.guesses, shape.keys


def _like(chain: ChainGuesses) -> ChainGuesses:
    laws = None if chain.laws is None else torch.empty_like(chain.laws)
    ids, fed, peaks = (torch.empty_like(one) for one in (chain.ids, chain.fed, chain.peaks))
    return ChainGuesses(ids, fed, laws, peaks)


def _draw_type(device: torch.device) -> torch.dtype:
    """What draws are held in: fp64 where the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64
