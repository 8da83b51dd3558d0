"""Reads with passes of fixed shape where they fit, and eagerly where they do not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from app.models.exhausted import memory_guard
from app.models.fixed.chain import FIRST, Chains, ChainShape, guess_chain
from app.models.fixed.fixed_pass import PassOutputs
from app.models.fixed.recorder import record_all
from app.models.fixed.room import LentRoom, Room, RoomCache, Shape
from app.models.fixed.shapes import LARGEST, is_prompt, keys_between
from app.models.machine import release_memory
from app.models.picking import ChainGuesses, Picking, Told
from app.models.tree import Tree

if TYPE_CHECKING:
    from app.models.causal_model import Advance
    from app.models.fixed.passes import Passes
    from app.models.language_model import LanguageModel


class FixedReader:
    """A language model as a session of fixed shapes reads with it: a `CausalModel`.

    Prompts are read eagerly, into the same memory; so are passes of a shape that had to be recorded
    and is not: no recording ever falls into a round that is timed.
    """

    def __init__(
        self, model: LanguageModel, passes: Passes, layers: tuple[int, ...] | None = None
    ) -> None:
        """`layers` are those whose inputs will be wanted as features; None for no features."""
        self._model = model
        self._passes = passes
        self._layers = layers

    @property
    def device(self) -> torch.device:
        """Where token ids have to lie."""
        return self._model.device

    def new_cache(self, capacity: int) -> RoomCache:
        """An empty cache with room for `capacity` tokens."""
        rooms = self._passes.rooms
        return rooms.cache(capacity, self._layers, lambda: self._new_room(capacity))

    def _new_room(self, capacity: int) -> Room:
        model = self._model
        return Room(
            model.layers,
            capacity,
            model.device,
            self._passes.new_recorder(),
            dtype=model.dtype,
            key_step=model.key_step,
        )

    def is_current(self, cache: RoomCache) -> bool:
        """Whether a session opened now would read in fixed shapes, as this one can."""
        chosen = self._model.passes
        return chosen is self._passes and chosen.mode != "eager" and not cache.room.is_forgotten

    def forward(self, ids: Tensor, cache: RoomCache, rows: int, tree: Tree | None = None) -> Tensor:
        """As `LanguageModel.forward`."""
        found = self._answer(ids, cache, rows, None, tree)
        return self._model.forward(ids, cache, rows, tree) if found is None else found.logits

    def forward_with_features(
        self,
        ids: Tensor,
        cache: RoomCache,
        rows: int,
        *,
        layers: tuple[int, ...] = (),
        tree: Tree | None = None,
    ) -> tuple[Tensor, Tensor]:
        """As `LanguageModel.forward_with_features`."""
        found = self._answer(ids, cache, rows, layers, tree)
        if found is None or found.features is None:
            return self._model.forward_with_features(ids, cache, rows, layers=layers, tree=tree)
        return found.logits, found.features

    @torch.inference_mode()
    def _answer(
        self,
        ids: Tensor,
        cache: RoomCache,
        rows: int,
        layers: tuple[int, ...] | None,
        tree: Tree | None,
    ) -> PassOutputs | None:
        """The pass in a fixed shape, its padded rows left out; None where it has to be eager."""
        fed, room = len(ids), cache.room
        fits = self._passes.mode != "eager" and 0 < fed <= LARGEST and not is_prompt(fed, rows)
        if not fits or (tree is not None and len(tree.parents) > fed):
            return None
        shape = room.shape(fed, cache.length, layers)
        if not room.holds(shape):
            return None
        with memory_guard(self._model.name):
            room.rows(shape.width).load(ids, cache.length, tree)
            found = room.answer(self._model, shape)
            logits = found.logits[fed - rows : fed]
            features = None if found.features is None else found.features[:fed]
            if room.recorder is not None:  # the next pass of this shape writes to the same memory
                logits = logits.clone()
                features = None if features is None else features.clone()
        cache.settle(fed)
        return PassOutputs(logits, features)

    def prepare(
        self,
        cache: RoomCache,
        rows: int,
        *,
        behind: int,
        layers: tuple[int, ...] | None,
        advance: Advance,
    ) -> None:
        """Records the passes of up to so many rows that a text may need which goes on from what is
        held, and at least from `behind` tokens. What cannot be recorded makes all passes of the
        model eager, with the reason.

        Raises what `advance` does.
        """
        if cache.room.recorder is None or self._passes.mode == "eager":
            return
        start = min(max(cache.length, behind), cache.capacity - 1)
        padded = cache.room.padded_shapes(rows, start, cache.capacity)
        shapes = [Shape(*one, layers) for one in padded]
        wanted = [one for one in shapes if not cache.room.holds(one)]
        record = partial(self._record, cache.room, start)
        failed = record_all(wanted, record, advance, what="its passes")
        if failed:
            self._passes.fall_back(failed.reason, for_now=failed.for_now)
            cache.room.forget()
            release_memory()

    def holds_chain(
        self, cache: RoomCache | LentRoom, length: int, count: int, how: Picking
    ) -> bool:
        """Whether a chain of so many guesses can be made now behind so many tokens of a text."""
        if self._passes.mode == "eager":
            return False
        return self._chains(cache.room).holds(_chain_shape(cache, length, count, how))

    @torch.inference_mode()
    def chain(
        self, ids: Tensor, cache: RoomCache | LentRoom, count: int, *, how: Picking, told: Told
    ) -> ChainGuesses:
        """Feeds ids [1 or 2] behind the cache and makes guesses, each fed before the next is made,
        through as many layers as the cache has; such a chain has to be held. Raises Problem when
        the device's memory is exhausted.
        """
        room, chains = cache.room, self._chains(cache.room)
        first = len(ids) if room.is_exact else FIRST
        shape = _chain_shape(cache, cache.length + len(ids), count, how, first)
        with memory_guard(self._model.name):
            room.rows(first).load(ids, cache.length)
            found = chains.behind(told, shape)
        cache.settle(len(ids) + count - 1)
        return found

    @torch.inference_mode()
    def prepare_chain(
        self,
        cache: RoomCache | LentRoom,
        counts: Sequence[int],
        how: Picking,
        *,
        behind: int,
        advance: Advance,
    ) -> None:
        """Records the chains of these lengths that a text may need which goes on from what is held,
        and at least from `behind` tokens. Where that fails, guesses are made one by one.

        Raises what `advance` does.
        """
        room = cache.room
        if room.recorder is None or self._passes.mode == "eager":
            return
        start = min(max(cache.length, behind), cache.capacity - 1)
        rows = room.rows(FIRST)
        rows.load(rows.ids[:1].clone(), start)
        shapes = [shape for count in counts for shape in _chain_shapes(cache, start, count, how)]
        failed = self._chains(room).prepare(shapes, advance)
        if failed:
            self._passes.note(f"chains one by one: {failed}")

    def _chains(self, room: Room) -> Chains:
        rows = {width: room.rows(width) for width in (1, FIRST)}
        return room.chains(partial(guess_chain, self._model, room.memory, rows))

    @torch.inference_mode()
    def _record(self, room: Room, start: int, shape: Shape) -> None:
        room.record(self._model, shape, start)


def _chain_shape(
    cache: RoomCache | LentRoom, length: int, count: int, how: Picking, first: int = FIRST
) -> ChainShape:
    """The shape of a chain behind so many tokens of a text."""
    return ChainShape(count, cache.room.keys(length + count), how, first, cache.depth)


def _chain_shapes(
    cache: RoomCache | LentRoom, start: int, count: int, how: Picking
) -> list[ChainShape]:
    """The shapes of all chains of so many guesses behind more tokens than `start`."""
    ends = start + 1 + count, cache.capacity + 1
    if ends[0] > ends[1]:
        return []
    every = keys_between(*ends, cache.room.memory.room)
    return [ChainShape(count, keys, how, FIRST, cache.depth) for keys in every]
