"""A draft head's whole chain of guesses as one run over tensors.

The pairs that are new of the text are fed eagerly, as ever: they end in the feature that the first
guess is taken from. Each further guess feeds a pair of the head's own, at a place behind the text.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from app.models.attention import attend, rotate
from app.models.fixed.chain import Chains, ChainShape, as_chain
from app.models.fixed.memory import PlacedLayer
from app.models.fixed.recorder import Recorder
from app.models.fixed.room import Room
from app.models.picking import Chain

if TYPE_CHECKING:
    from app.models.loaded_head import LoadedHead


class HeadRoom(Room):
    """The memory of one head session at a time, and the chains that are recorded over it."""

    def __init__(self, head: LoadedHead, capacity: int, recorder: Recorder | None) -> None:
        super().__init__(1, capacity, head.device, recorder)
        self._head = head
        self.start = torch.zeros((), dtype=torch.long, device=head.device)
        """How many pairs are held before a chain, []."""
        self.feature = torch.zeros((1, head.hidden), dtype=head.dtype, device=head.device)
        """What was predicted behind them, [1, hidden]."""
        # A table that grows later must not leave recorded chains without theirs.
        self.rotation = head.rotary.between(0, self.memory.room, head.dtype)

    @property
    def layer(self) -> PlacedLayer:
        """The head's keys and values."""
        return self.memory.layers[0]

    @property
    def guesses(self) -> Chains:
        """The chains that go on from what the room was told."""
        return self.chains(partial(guess_head_chain, self._head, self))

    def tell(self, start: int, feature: Tensor) -> None:
        """Tells of a chain behind so many pairs, and of the feature [1, hidden] behind them."""
        self.start.fill_(start)
        self.feature.copy_(feature)


def guess_head_chain(head: LoadedHead, room: HeadRoom, shape: ChainShape, draws: Tensor) -> Chain:
    """Makes a chain behind what the room was told. Uses only tensors that stay where they are."""
    feature, how = room.feature, shape.how
    made = [how.pick(head.logits(feature)[0], draws[0])]
    for place in range(1, shape.guesses):
        token = how.fed(made[-1].token).reshape(1)
        feature = _feed(head, room, token, feature, room.start + (place - 1), shape.keys)
        made.append(how.pick(head.logits(feature)[0], draws[place]))
    return as_chain(made, how)


def _feed(
    head: LoadedHead, room: HeadRoom, ids: Tensor, feature: Tensor, place: Tensor, keys: int
) -> Tensor:
    """Feeds a pair, id [1] and feature [1, hidden], at a place [], and predicts the next feature.

    Sums over the first `keys` places.
    """
    module, at = head.module, place.reshape(1)
    x = module.joined(head.embeddings(ids), feature)
    query, key, value = module.vectors(x)
    cosines, sines = (table.index_select(0, at) for table in room.rotation)
    query, key = rotate(query, cosines, sines), rotate(key, cosines, sines)
    room.layer.aim(at, keys)
    held = room.layer.update(key.transpose(0, 1)[None], value.transpose(0, 1)[None])
    room.layer.aim(None, 0)
    hidden = torch.arange(keys, device=at.device)[None] > at
    mask = torch.zeros(hidden.shape, dtype=x.dtype, device=at.device)
    mask.masked_fill_(hidden, float("-inf"))
    return module.feature(x, attend(query, *held, mask=mask, scale=module.scale))
