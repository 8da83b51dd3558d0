"""What a session of fixed shapes works in: its memory, and the passes recorded over it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from app.models.cache import LentCache, SequenceCache
from app.models.fixed.chain import Chains, Compute
from app.models.fixed.fixed_pass import PassOutputs, PassRows, fixed_pass
from app.models.fixed.memory import PlacedLayers
from app.models.fixed.recorder import Recorder, Recordings, Run
from app.models.fixed.shapes import keys_of, padded_shapes, width_of

if TYPE_CHECKING:
    from app.models.language_model import LanguageModel


class Shape(NamedTuple):
    """All that the host decides of a pass."""

    width: int
    """Rows, padded ones included."""
    keys: int
    """Keys that attention sums over."""
    layers: tuple[int, ...] | None
    """Whose inputs are wanted as features, as `forward_with_features` has it; None for none."""


class Recorded(NamedTuple):
    """A pass that can be repeated, and where it leaves what it yields."""

    replay: Run
    answer: PassOutputs


class Room:
    """The memory of one sequence at a time, and the passes that are recorded over it."""

    def __init__(
        self,
        layers: int,
        capacity: int,
        device: torch.device,
        recorder: Recorder | None,
        *,
        dtype: torch.dtype,
        key_step: int = 1,
    ) -> None:
        """Of passes that are computed in a type; `key_step` is what keys are counted in where they
        are padded no further.
        """
        self.capacity = capacity
        self.memory = PlacedLayers(layers, capacity)
        self.recorder = recorder
        """None for passes that are computed each time."""
        self._device, self._dtype = device, dtype
        self._key_step = key_step
        self._rows: dict[int, PassRows] = {}
        self._all_recorded: list[Recordings[Any, Any]] = []
        self._recorded: Recordings[Shape, Recorded] = self.recordings()
        self._answers: dict[tuple[int, tuple[int, ...] | None], PassOutputs] = {}
        self._chains: Chains | None = None

    def recordings(self) -> Recordings[Any, Any]:
        """Where what is recorded over its memory is kept: as long as any of it is."""
        self._all_recorded.append(Recordings(self.recorder))
        return self._all_recorded[-1]

    def rows(self, width: int) -> PassRows:
        """What passes of this width are told."""
        if width not in self._rows:
            self._rows[width] = PassRows(width, self._device, self._dtype)
        return self._rows[width]

    def shape(self, fed: int, start: int, layers: tuple[int, ...] | None) -> Shape:
        """The shape of a pass that feeds so many rows behind the first `start` tokens.

        A processor is slower by every row and key that a pass is padded by, and has no use for it
        where nothing is recorded: there it is padded to what the model counts keys in only.
        """
        width = fed if self.is_exact else width_of(fed)
        return Shape(width, self.keys(start + width), layers)

    def keys(self, end: int) -> int:
        """How many keys passes sum over whose rows end there, padded ones included."""
        if self.is_exact:
            return -(-end // self._key_step) * self._key_step
        return keys_of(end, self.memory.room)

    @property
    def is_exact(self) -> bool:
        """Whether passes have no more rows than they are fed."""
        return self.recorder is None and self._device.type == "cpu"

    def padded_shapes(self, rows: int, start: int, capacity: int) -> list[tuple[int, int]]:
        """The width and the keys of all passes of up to so many rows, from `start` on, in a
        sequence of up to so many tokens.
        """
        return padded_shapes(rows, start=start, capacity=capacity, room=self.memory.room)

    def holds(self, shape: Shape) -> bool:
        """Whether a pass of this shape can be had now."""
        if self.recorder is not None:
            return shape in self._recorded
        return not self.is_forgotten

    def recorded(self, layers: tuple[int, ...] | None) -> int:
        """How many passes are recorded that yield features of these layers; with None none."""
        return sum(shape.layers == layers for shape in self._recorded)

    def answer(self, model: LanguageModel, shape: Shape) -> PassOutputs:
        """What the pass yields that its rows have been told of, until the next one of its width. It
        has to be held.
        """
        if self.recorder is None:
            whole = self.is_exact and self._key_step == 1
            return self._pass(model, shape, whole=whole)
        found = self._recorded[shape]
        found.replay()
        return found.answer

    def chains(self, compute: Compute) -> Chains:
        """The chains of guesses that it offers; `compute` makes one, the same each time."""
        if self._chains is None:
            self._chains = Chains(compute, self._device, self.recordings())
        return self._chains

    def record(self, model: LanguageModel, shape: Shape, start: int) -> None:
        """Records a pass; what it tries lies behind the first `start` tokens. Raises whatever the
        recorder does.
        """
        rows = self.rows(shape.width)
        rows.load(rows.ids.clone(), start)
        out = self._answer_of(model, shape)
        run = partial(self._pass_into, model, shape, out)
        self._recorded[shape] = Recorded(self._recorded.record(run), out)

    def _answer_of(self, model: LanguageModel, shape: Shape) -> PassOutputs:
        """Where passes of this width leave what they yield, whatever the number of keys."""
        like = (shape.width, shape.layers)
        if like not in self._answers:
            first = self._pass(model, shape)
            features = None if first.features is None else torch.empty_like(first.features)
            self._answers[like] = PassOutputs(torch.empty_like(first.logits), features)
        return self._answers[like]

    def _pass(self, model: LanguageModel, shape: Shape, *, whole: bool = False) -> PassOutputs:
        rows, (_, keys, layers) = self.rows(shape.width), shape
        return fixed_pass(model, self.memory, rows, keys=keys, layers=layers, whole=whole)

    def _pass_into(self, model: LanguageModel, shape: Shape, out: PassOutputs) -> None:
        """Computes a pass into tensors that stay where they are."""
        found = self._pass(model, shape)
        out.logits.copy_(found.logits)
        if out.features is not None and found.features is not None:
            out.features.copy_(found.features)

    def try_again(self) -> None:
        """Has what could not be recorded for now be tried once more."""
        for recorded in self._all_recorded:
            recorded.try_again()

    @property
    def is_forgotten(self) -> bool:
        """Whether what was recorded is let go of: passes over its memory are eager ones then."""
        return self._recorded.is_forgotten

    def forget(self) -> None:
        """Lets go of all that is recorded, for good."""
        for recorded in self._all_recorded:
            recorded.forget()
        self._answers.clear()
        self._chains = None
        self.recorder = None


class RoomCache(SequenceCache):
    """The cache of one sequence in a room, which it holds as long as it lives."""

    def __init__(self, room: Room, capacity: int) -> None:
        super().__init__(room.memory.inner, fixed=True)
        self.room = room
        self.capacity = capacity
        """Most tokens of the sequence; the room may have been made for longer ones."""

    def settle(self, tokens: int) -> None:
        """Notes that a pass of fixed shape has written so many tokens that count."""
        self.advance(tokens)
        self.room.memory.set_length(self.length)

    def crop(self, length: int) -> None:
        """Forgets every token behind the first `length`."""
        if length < self.length:
            self._length = length
            self.room.memory.set_length(length)

    def lend(self, depth: int) -> LentRoom:
        """A cache of the first `depth` layers, which holds what this one holds now."""
        return LentRoom(self, depth)


class LentRoom(LentCache):
    """The first layers of a sequence's cache in a room, for chains of guesses too."""

    def __init__(self, owner: RoomCache, depth: int) -> None:
        super().__init__(owner, depth)
        self.room, self.capacity = owner.room, owner.capacity

    def settle(self, tokens: int) -> None:
        """Notes that passes of fixed shape have written so many tokens, where the owner's next pass
        writes anyway: its layers are as long as before.
        """
        self.advance(tokens)


class Rooms:
    """The rooms of one model that no session is in, as long as they are kept for others."""

    def __init__(self) -> None:
        self._free: list[Room] = []
        self._keepers = 0
        self._takes_back = False

    @contextmanager
    def kept(self) -> Iterator[None]:
        """While it lasts, the room of a session that has ended waits for another session."""
        self._keepers += 1
        self._takes_back = True
        try:
            yield
        finally:
            self._keepers -= 1
            if not self._keepers:
                self._free.clear()

    def clear(self) -> None:
        """Lets go of those that are free, with all that is recorded in them, and of the others when
        they are left, until something is kept anew.
        """
        self._free.clear()
        self._takes_back = False

    def cache(
        self, capacity: int, layers: tuple[int, ...] | None, make: Callable[[], Room]
    ) -> RoomCache:
        """An empty cache in a free room that is large enough, or a new one; of several the one in
        which most is recorded of what yields features of these layers.
        """
        cache = RoomCache(self._fitting(capacity, layers) or make(), capacity)
        room = cache.room
        weakref.finalize(cache, _give_back, weakref.ref(self), room).atexit = False
        return cache

    def _fitting(self, capacity: int, layers: tuple[int, ...] | None) -> Room | None:
        """A free room that is large enough. Without any, the smaller ones are let go: what is asked
        for now takes their place.
        """
        fitting = [room for room in self._free if room.capacity >= capacity]
        if not fitting:
            self._free.clear()
            return None
        room = max(fitting, key=lambda one: (one.recorded(layers), -one.capacity))
        self._free.remove(room)
        room.memory.clear()
        room.try_again()
        return room

    def _take_back(self, room: Room) -> None:
        if self._keepers and self._takes_back and not room.is_forgotten:
            self._free.append(room)


def _give_back(rooms: weakref.ref[Rooms], room: Room) -> None:
    """What happens to a room once its cache is gone."""
    found = rooms()
    if found is not None:
        found._take_back(room)
