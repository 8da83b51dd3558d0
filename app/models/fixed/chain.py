"""A draft's whole chain of guesses as one run over tensors: each is fed before the next is made.

The first pass reads the one or two tokens that are new of the text, padded to two rows where it is
recorded; a chain of n guesses goes on with n - 1 passes of one row, at places that are tensors too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from app.models.fixed.fixed_pass import PassRows, fixed_pass
from app.models.fixed.memory import PlacedLayers
from app.models.fixed.recorder import Recordings, Run
from app.models.fixed.whole import LONGEST, WholeDrafts, of_each
from app.models.machine import on_device
from app.models.picking import ChainGuesses, Picked, Picking, Told

if TYPE_CHECKING:
    from app.models.language_model import LanguageModel

FIRST = 2
"""Rows of a chain's first pass where it is padded."""


class ChainShape(NamedTuple):
    """All that the host decides of a chain, as `WholeShape` has it."""

    length: int
    """Its guesses."""
    keys: int
    how: Picking
    first: int = 0
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
    read = partial(fixed_pass, model, memory, keys=shape.keys, layers=None, depth=shape.depth)
    row = read(first).logits.index_select(0, first.count - 1)[0]
    made = [shape.how.pick(row, draws[0], used)]
    for place in range(1, shape.length):
        step.ids.copy_(shape.how.fed(made[-1].token).reshape(1))
        step.start.copy_((end + (place - 1))[0])
        row = read(step).logits[0]
        made.append(shape.how.pick(row, draws[place], used))
    return as_chain(made, shape.how)


def as_chain(made: list[Picked], how: Picking) -> ChainGuesses:
    """Guesses one behind the other."""
    ids = torch.stack([one.token for one in made])
    fed = torch.stack([how.fed(one.token) for one in made])
    laws = [one.law for one in made if one.law is not None]
    peaks = torch.stack([one.peak for one in made])
    return ChainGuesses(ids, fed, torch.stack(laws) if laws else None, peaks)


class Chains(WholeDrafts[ChainShape, ChainGuesses]):
    """The chains that one room offers."""

    def __init__(
        self,
        compute: Compute,
        device: torch.device,
        recordings: Recordings[ChainShape, tuple[Run, ChainGuesses]],
    ) -> None:
        super().__init__(device, recordings)
        self._compute = compute
        self._places: dict[Picking, ChainGuesses] = {}
        """Where chains leave what they are, by how it is taken: rows for the longest of them."""
        self._draws = torch.full((LONGEST,), 0.5, dtype=_draw_type(device), device=device)

    def behind(self, told: Told, shape: ChainShape) -> ChainGuesses:
        """As `WholeDrafts.behind`."""
        if told.draws:
            draws = on_device(told.draws, self._draws.dtype, self._device)
            self._draws[: shape.length].copy_(draws)
        return super().behind(told, shape)

    def make(self, shape: ChainShape) -> ChainGuesses:
        """As `WholeDrafts.make`."""
        return self._compute(shape, self._draws, self.used(shape))

    def place_of(self, shape: ChainShape) -> ChainGuesses:
        """As `WholeDrafts.place_of`: of those that are taken alike, the longest one's."""
        held = self._places.get(shape.how)
        if held is None or len(held.ids) < shape.length:
            held = self._places[shape.how] = super().place_of(shape)
        return of_each(held, lambda one: one[: shape.length])


def _draw_type(device: torch.device) -> torch.dtype:
    """What draws are held in: fp64 where the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64
