"""What a draft head's session works in: its memory, and the chains and trees made over it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from app.models.causal_model import Advance
from app.models.fixed.chain import Chains
from app.models.fixed.head_chain import guess_head_chain
from app.models.fixed.head_feed import FeedShape, HeadFeeds
from app.models.fixed.head_tree import HeadTrees, grow_head_tree
from app.models.fixed.memory import PlacedLayer
from app.models.fixed.recorder import Recorder
from app.models.fixed.room import Room
from app.models.fixed.shapes import LARGEST, width_of

if TYPE_CHECKING:
    from app.models.loaded_head import LoadedHead


class HeadRoom(Room):
    """The memory of one head session at a time, and the chains and trees recorded over it."""

    def __init__(self, head: LoadedHead, capacity: int, recorder: Recorder | None) -> None:
        super().__init__(1, capacity, head.device, recorder, dtype=head.dtype)
        self.start = torch.zeros((), dtype=torch.long, device=head.device)
        """How many pairs are held before any guess, []."""
        self.feature = torch.zeros((1, head.hidden), dtype=head.dtype, device=head.device)
        """What was predicted behind them, [1, hidden]."""
        # A table that grows later must not leave recorded chains without theirs.
        self.rotation = head.rotary.between(0, self.memory.room, head.dtype)
        by, told = (head, self.layer, self.rotation), (self.start, self.feature)
        self.feeds = HeadFeeds(*by, *told, recordings=self.recordings())
        self.guesses = Chains(partial(guess_head_chain, *by, *told), head.device, self.recordings())
        """The chains that go on from what the room was told."""
        self.trees = HeadTrees(partial(grow_head_tree, *by, *told), head.device, self.recordings())
        """The trees that do."""

    @property
    def layer(self) -> PlacedLayer:
        """The head's keys and values."""
        return self.memory.layers[0]

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
        shapes = [FeedShape(*one) for one in self.padded_shapes(rows, start, capacity)]
        self.start.fill_(start)
        return self.feeds.prepare(shapes, advance)

    def tell(self, start: int, feature: Tensor) -> None:
        """Tells of guesses behind so many pairs, and of the feature [1, hidden] behind them."""
        self.start.fill_(start)
        self.feature.copy_(feature)
