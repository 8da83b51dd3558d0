"""One sequence at work: reads what a text says. Its cache is its own; it lends the first layers of
it to guesses that end before its next read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from app.models.block import Block
from app.models.causal_model import (
    CHAIN_READS,
    Advance,
    CausalModel,
    ChainModel,
    Prepares,
    ReadsOneWay,
)
from app.models.machine import on_device
from app.models.picking import ChainReading, Picking, Told
from app.models.tree import Tree, path_through
from app.run.problems import Problem

if TYPE_CHECKING:
    from app.models.cache import LentCache

MAX_CHUNK = 512
"""Most tokens of a prompt that one pass may feed, so that a stop takes effect within one pass."""


class Reading:
    """What a pass yields: logits [rows, width] of the last rows that were fed."""

    __slots__ = ("logits",)

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits


class Session:
    """Reads texts with a model, keeping what it has fed so that nothing is fed twice.

    The text is an append-only list of committed ids. Before each pass the session compares the
    tail of what it holds with the text, and forgets what the text does not say. Another list than
    the last one is compared from its start: it may be the next turn of a conversation.
    """

    def __init__(
        self,
        model: CausalModel[Any],
        capacity: int,
        *,
        features: bool = False,
        layers: tuple[int, ...] = (),
    ) -> None:
        """With `features`, keeps those of every token held: the inputs of these layers, or the
        state behind the final norm.
        """
        self._model = model
        self._capacity = capacity
        self._cache = model.new_cache(capacity)
        self._keeps_features = features
        self._layers = layers
        self._features: Tensor | None = None
        self._text: Sequence[int] = ()
        """The text as it was last read."""
        self._settled = 0
        """Tokens held that are known to be the start of the text."""
        self._block: Block | None = None
        self._block_fed = 0

    @property
    def model(self) -> CausalModel[Any]:
        """What it reads with."""
        return self._model

    @property
    def byte_count(self) -> int:
        """Bytes that the cache takes, and the features that are kept."""
        kept = self._features
        features = 0 if kept is None else kept.numel() * kept.element_size()
        return int(self._cache.byte_count) + features

    @property
    def features(self) -> Tensor:
        """The feature of every token held, by its place in the text: [at least held, width].

        Raises RuntimeError unless the session was opened to keep them and has read something.
        """
        if self._features is None:
            raise RuntimeError("this session keeps no features, or has read nothing")
        return self._features

    @property
    def capacity(self) -> int:
        """Most tokens that it can hold."""
        return self._capacity

    @property
    def held(self) -> int:
        """Tokens in the cache."""
        return int(self._cache.length)

    @property
    def is_current(self) -> bool:
        """Whether it reads in the way in which one would that is opened now."""
        model = self._model
        return model.is_current(self._cache) if isinstance(model, ReadsOneWay) else True

    def prepare(
        self, rows: int, *, behind: int = 0, advance: Advance = lambda done, total: None
    ) -> None:
        """Does now what passes of up to so many rows would else have to do without: records them,
        where the model replays recordings. None of them will begin before so many tokens are held.

        Raises what `advance` does.
        """
        if isinstance(self._model, Prepares):
            layers = self._layers if self._keeps_features else None
            self._model.prepare(self._cache, rows, behind=behind, layers=layers, advance=advance)

    def chain(
        self, text: Sequence[int], count: int, *, how: Picking, told: Told
    ) -> ChainReading | None:
        """Guesses so many tokens behind the text in one go, as `ChainSession` has it."""
        if not isinstance(self._model, ChainModel) or self._keeps_features or not text:
            return None
        fits = len(text) + count - 1 <= self._capacity
        if not (fits and self._model.holds_chain(self._cache, len(text), count, how)):
            return None
        if self.unread(text) > CHAIN_READS:
            self.read(text, rows=1, upto=len(text) - CHAIN_READS)
        fresh = on_device(text[-self.to_feed(text) :], torch.long, self._model.device)
        found = self._model.chain(fresh, self._cache, count, how=how, told=told)
        self._settled, self._block_fed = len(text), count - 1
        self._block = block = Block(device=self._model.device)
        block.extend(found.fed)
        return ChainReading(block, found)

    def prepare_chain(
        self, counts: Sequence[int], how: Picking, *, behind: int, advance: Advance
    ) -> None:
        """Prepares chains of these lengths, as `ChainSession` has it."""
        if isinstance(self._model, ChainModel) and not self._keeps_features:
            self._model.prepare_chain(self._cache, counts, how, behind=behind, advance=advance)

    def lend(self, depth: int) -> LentCache:
        """The cache's first `depth` layers, for passes that go no deeper, until the next read."""
        lent: LentCache = self._cache.lend(depth)
        return lent

    def unread(self, text: Sequence[int]) -> int:
        """How many tokens of the text the next pass would have to feed."""
        self._reconcile(text)
        return len(text) - self._settled

    def to_feed(self, text: Sequence[int]) -> int:
        """How many tokens of the text are fed by what goes on behind it: as `unread`, but the last
        one in any case, which is forgotten where it is held.
        """
        self._reconcile(text)
        self._crop(min(self._settled, len(text) - 1))
        return len(text) - self._settled

    def read(
        self, text: Sequence[int], block: Block | None = None, *, rows: int, upto: int | None = None
    ) -> Reading:
        """Reads the text (its first `upto` tokens) and the block behind it.

        Returns the logits of the last `rows` tokens fed; a row's logits say what follows its token.
        The last token of the text is fed again if no fresh token would otherwise yield the rows.
        Raises Problem if the sequence outgrows the session.
        """
        grown = block is not None and block is self._block and block.tree is None
        if block is not None and grown and self._settled == len(text):
            return self._extend(block, rows)
        self._reconcile(text)
        end = len(text) if upto is None else upto
        wanted_from_text = max(rows - (len(block) if block else 0), 0)
        start = max(min(self._settled, end - wanted_from_text), 0)
        self._crop(start)
        fresh = on_device(text[start:end], torch.long, self._model.device)
        return self._feed_with_block(fresh, block, rows=rows, settled=end)

    def _feed_with_block(
        self, fresh: Tensor, block: Block | None, *, rows: int, settled: int
    ) -> Reading:
        ids = torch.cat([fresh, block.tensor().to(fresh.device)]) if block else fresh
        reading = self._feed(ids, rows, block.tree if block else None)
        self._settled, self._block = settled, block
        self._block_fed = len(block) if block else 0
        return reading

    def _extend(self, block: Block, rows: int) -> Reading:
        """Feeds what a block has grown by since its last pass."""
        reading = self._feed(block.tensor(self._block_fed), rows)
        self._block_fed = len(block)
        return reading

    def _feed(self, ids: Tensor, rows: int, tree: Tree | None = None) -> Reading:
        if self._cache.length + len(ids) > self._capacity:
            raise Problem(
                f"The text has outgrown its session of {self._capacity} tokens.",
                "Raise the context length, or ask for fewer new tokens.",
            )
        if not self._keeps_features:
            return Reading(self._model.forward(ids, self._cache, rows, tree=tree))
        start = self._cache.length
        logits, features = self._model.forward_with_features(
            ids, self._cache, rows, layers=self._layers, tree=tree
        )
        if self._features is None:
            self._features = features.new_empty((self._capacity, features.shape[-1]))
        self._features[start : start + len(ids)] = features
        return Reading(logits)

    def _reconcile(self, text: Sequence[int]) -> None:
        """Counts what was under test and became text as settled; forgets the rest."""
        if text is not self._text:
            self._change_to(text)
        if self._block is not None:
            ids, parents = (
                held[: self._block_fed] for held in (self._block.ids, self._block.parents)
            )
            path = path_through(ids, parents, list(text[self._settled : self._settled + len(ids)]))
            self._gather(path)
            self._settled += len(path)
            self._block, self._block_fed = None, 0
        self._settled = min(self._settled, len(text))
        self._crop(self._settled)

    @torch.inference_mode()
    def _gather(self, path: list[int]) -> None:
        """Moves what a path through the block has left in the cache right behind the text."""
        if path == list(range(len(path))):
            return
        start = self._settled
        places = on_device(path, torch.long, self._model.device)
        self._cache.keep(start, places)
        if self._features is not None:
            self._features[start : start + len(path)] = self._features[start + places]

    def _change_to(self, text: Sequence[int]) -> None:
        """Keeps of what is settled, and of the block behind it, what another text says as well."""
        shared = shared_start(self._text[: self._settled], text[: self._settled])
        if shared < self._settled:
            self._settled, self._block, self._block_fed = shared, None, 0
        self._text = text

    def _crop(self, length: int) -> None:
        if self._cache.length > length:
            self._cache.crop(length)
        self._settled = min(self._settled, length)


def shared_start(one: Sequence[int], other: Sequence[int]) -> int:
    """How many ids both begin with."""
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    return next((place for place in range(length) if one[place] != other[place]), length)
