"""A draft head's whole chain of guesses as one run over tensors.

The pairs that are new of the text are fed before it: they end in the feature that the first guess
is taken from. Each further guess feeds a pair of the head's own, at a place behind the text.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from app.models.causal_model import Advance
from app.models.fixed.chain import Chains, ChainShape, as_chain
from app.models.fixed.head_feed import FeedShape, HeadFeeds, Rotation, feed_pairs
from app.models.fixed.head_tree import HeadTrees, grow_head_tree
from app.models.fixed.memory import PlacedLayer
from app.models.fixed.recorder import Recorder
from app.models.fixed.room import Room
from app.models.fixed.shapes import LARGEST, width_of
from app.models.picking import ChainGuesses

if TYPE_CHECKING:
    from app.models.loaded_head import LoadedHead


class HeadRoom(Room):
    """The memory of one head session at a time, and the chains and trees recorded over it."""

    def __init__(self, head: LoadedHead, capacity: int, recorder: Recorder | None) -> None:
        super().__init__(1, capacity, head.device, recorder)
        self._head = head
        self.start = torch.zeros((), dtype=torch.long, device=head.device)
        """How many pairs are held before any guess, []."""
        self.feature = torch.zeros((1, head.hidden), dtype=head.dtype, device=head.device)
        """What was predicted behind them, [1, hidden]."""
        # A table that grows later must not leave recorded chains without theirs.
        self.rotation = head.rotary.between(0, self.memory.room, head.dtype)
        self.feeds = HeadFeeds(
            head, self.layer, self.rotation, start=self.start, feature=self.feature
        )
        told = self.start, self.feature
        self.trees = HeadTrees(
            partial(grow_head_tree, head, self.layer, self.rotation, *told), recorder
        )
        """The trees that go on from what the room was told."""

    @property
    def layer(self) -> PlacedLayer:
        """The head's keys and values."""
        return self.memory.layers[0]

    @property
    def guesses(self) -> Chains:
        """The chains that go on from what the room was told."""
        told = self.start, self.feature
        return self.chains(partial(guess_head_chain, self._head, self.layer, self.rotation, *told))

    def feed(self, ids: Tensor, features: Tensor, start: int) -> bool:
        """Feeds pairs of a text behind the first `start`, ids [n] and the target's features [n,
        width], if that is recorded: what is predicted behind them is then this room's feature.
        """
        if not 0 < len(ids) <= LARGEST:
            return False
        width = width_of(len(ids))
        shape = FeedShape(width, self.keys(start + width))
        if not self.feeds.holds(shape):
            return False
        self.feeds.run(shape, ids, features, start)
        self.memory.set_length(start + len(ids))
        return True

    def prepare_feeds(self, rows: int, start: int, capacity: int, advance: Advance) -> str:
        """Records the feeds of up to so many pairs behind the first `start` and more, of up to
        `capacity`; why not, or empty. Raises what `advance` does.
        """
        if self.recorder is None:
            return ""
        shapes = [FeedShape(*one) for one in self.padded_shapes(rows, start, capacity)]
        self.start.fill_(start)
        return self.feeds.prepare(shapes, self.recorder, advance)

    def tell(self, start: int, feature: Tensor) -> None:
        """Tells of guesses behind so many pairs, and of the feature [1, hidden] behind them."""
        self.start.fill_(start)
        self.feature.copy_(feature)


def guess_head_chain(
    head: LoadedHead,
    layer: PlacedLayer,
    rotation: Rotation,
    start: Tensor,
    feature: Tensor,
    shape: ChainShape,
    draws: Tensor,
    used: Tensor | None,
) -> ChainGuesses:
    """Makes a chain behind so many pairs, [], and what was predicted behind them, [1, hidden].

    Uses only tensors that stay where they are.
    """
    how = shape.how
    made = [how.pick(head.logits(feature)[0], draws[0], used)]
    for place in range(1, shape.guesses):
        at = (start + (place - 1)).reshape(1)
        feature = feed_pairs(
            head,
            layer,
            rotation,
            how.fed(made[-1].token).reshape(1),
            feature,
            places=at,
            positions=at,
            keys=shape.keys,
        )
        made.append(how.pick(head.logits(feature)[0], draws[place], used))
    return as_chain(made, how)
