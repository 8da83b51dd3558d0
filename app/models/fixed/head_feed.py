"""Feeds a draft head the pairs that are new of a text, as one run over tensors of a fixed width."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from app.models.attention import attend, rotate
from app.models.causal_model import Advance
from app.models.fixed.memory import PlacedLayer
from app.models.fixed.recorder import Recordings, Run

if TYPE_CHECKING:
    from app.models.loaded_head import LoadedHead

Rotation = tuple[Tensor, Tensor]
"""Cosines and sines of every place of a memory, as `RotaryTable.between` has them."""


class FeedShape(NamedTuple):
    """All that the host decides of a feed."""

    width: int
    """Pairs, padded ones included."""
    keys: int
    """Keys that attention sums over."""


def feed_pairs(
    head: LoadedHead,
    layer: PlacedLayer,
    rotation: Rotation,
    ids: Tensor,
    features: Tensor,
    *,
    places: Tensor,
    positions: Tensor,
    keys: int,
    hidden: Tensor | None = None,
) -> Tensor:
    """Feeds pairs, ids [n] and features [n, hidden], and predicts the next features [n, hidden].

    They are written at `places` [n], each seeing those up to its own of the first `keys`, or those
    that are not `hidden` [n, keys], and turned by `positions` [n], or all by one, [1].
    """
    module = head.module
    x = module.joined(head.embeddings(ids), features)
    query, key, value = module.vectors(x)
    cosines, sines = (table.index_select(0, positions) for table in rotation)
    query, key = rotate(query, cosines, sines), rotate(key, cosines, sines)
    with layer.aim.at(places, keys):
        held = layer.update(key.transpose(0, 1)[None], value.transpose(0, 1)[None])
    if hidden is None:
        hidden = torch.arange(keys, device=places.device)[None] > places[:, None]
    mask = torch.zeros(hidden.shape, dtype=x.dtype, device=places.device)
    mask.masked_fill_(hidden, float("-inf"))
    return module.feature(x, attend(query, *held, mask=mask, scale=module.scale))


class _Pairs:
    """What feeds of one width are told, in tensors that stay where they are."""

    def __init__(self, width: int, features: int, like: Tensor) -> None:
        self.ids = torch.zeros(width, dtype=torch.long, device=like.device)
        self.features = like.new_zeros((width, features))
        self.last = torch.zeros(1, dtype=torch.long, device=like.device)
        """The place of the last pair that is no padding, [1]."""
        self.steps = torch.arange(width, device=like.device)

    def load(self, ids: Tensor, features: Tensor) -> None:
        """Pairs to be fed: ids [n] and the target's features [n, width]."""
        count = len(ids)
        self.ids[:count].copy_(ids)
        self.features[:count].copy_(features)
        self.last.fill_(count - 1)


class HeadFeeds:
    """The feeds that are recorded over one memory of a head."""

    def __init__(
        self,
        head: LoadedHead,
        layer: PlacedLayer,
        rotation: Rotation,
        start: Tensor,
        feature: Tensor,
        *,
        recordings: Recordings[FeedShape, Run],
    ) -> None:
        """`start` [] is told how many pairs are held before a feed; `feature` [1, hidden] is where
        it leaves what is predicted behind the last pair.
        """
        self._head, self._layer, self._rotation = head, layer, rotation
        self._start, self._feature = start, feature
        self._pairs: dict[int, _Pairs] = {}
        self._recorded = recordings

    def holds(self, shape: FeedShape) -> bool:
        """Whether such a feed is recorded."""
        return shape in self._recorded

    def run(self, shape: FeedShape, ids: Tensor, features: Tensor, start: int) -> None:
        """Feeds pairs behind the first `start`: ids [n] and the target's features [n, width]."""
        self._pairs[shape.width].load(ids, features)
        self._start.fill_(start)
        self._recorded[shape]()

    def prepare(self, shapes: Sequence[FeedShape], advance: Advance) -> str:
        """Records these, as `Recordings.complete` has it."""
        return self._recorded.complete(shapes, self._record, advance)

    def _record(self, shape: FeedShape) -> None:
        if shape.width not in self._pairs:
            wide = max(len(self._head.layers), 1) * self._head.target.hidden
            self._pairs[shape.width] = _Pairs(shape.width, wide, self._feature)
        run = partial(self._compute, shape, self._pairs[shape.width])
        run()  # so that the memory is there
        self._recorded[shape] = self._recorded.record(run)

    def _compute(self, shape: FeedShape, pairs: _Pairs) -> None:
        """Uses only tensors that stay where they are. Padded pairs are turned as the last one, and
        written behind it, where whatever is fed next is written over them.
        """
        found = feed_pairs(
            self._head,
            self._layer,
            self._rotation,
            pairs.ids,
            self._head.module.first(pairs.features),
            places=self._start + pairs.steps,
            positions=self._start + torch.minimum(pairs.steps, pairs.last),
            keys=shape.keys,
        )
        self._feature.copy_(found.index_select(0, pairs.last))
