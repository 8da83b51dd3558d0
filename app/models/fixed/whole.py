"""Drafts that are made as a whole, chains or trees of guesses: each one run over tensors, that is
computed each time, or recorded once and replayed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

import torch
from torch import Tensor

from app.library.fixed_memory import LONGEST_CHAIN
from app.models.causal_model import Advance
from app.models.fixed.recorder import Recordings, Run
from app.models.growing import Growing, TreeGuesses
from app.models.picking import ChainGuesses, Picking, Told

LONGEST = LONGEST_CHAIN
"""Guesses of a chain, or levels of a tree, at most."""


class WholeShape(Protocol):
    """All that the host decides of a draft."""

    @property
    def length(self) -> int:
        """Its guesses one behind the other, or its levels."""
        ...

    @property
    def how(self) -> Picking | Growing:
        """How guesses are taken."""
        ...

    @property
    def keys(self) -> int:
        """Keys that attention sums over, in each of its passes."""
        ...

    def __hash__(self) -> int: ...


_Shape = TypeVar("_Shape", bound=WholeShape)
_Made = TypeVar("_Made", bound=ChainGuesses | TreeGuesses)


class WholeDrafts(ABC, Generic[_Shape, _Made]):
    """The drafts of one kind that one room offers."""

    def __init__(
        self, device: torch.device, recordings: Recordings[_Shape, tuple[Run, _Made]]
    ) -> None:
        self._device = device
        self._recorded = recordings
        self._used: dict[Picking | Growing, Tensor | None] = {}
        """Where drafts are told of used tokens, by how guesses are taken."""

    @abstractmethod
    def make(self, shape: _Shape) -> _Made:
        """Makes a draft behind what was told last, from tensors that stay where they are."""

    def place_of(self, shape: _Shape) -> _Made:
        """Where a recorded draft of this shape leaves what it is."""
        return of_each(self.make(shape), torch.empty_like)

    def holds(self, shape: _Shape) -> bool:
        """Whether such a draft can be had now."""
        if self._recorded.recorder is not None:
            return shape in self._recorded
        return not self._recorded.is_forgotten and 0 < shape.length <= LONGEST

    def behind(self, told: Told, shape: _Shape) -> _Made:
        """Such a draft, which has to be held, behind what is told."""
        used = self.used(shape)
        if used is not None:
            used.zero_() if told.used is None else used.copy_(told.used)
        if self._recorded.recorder is None:
            return self.make(shape)
        replay, left = self._recorded[shape]
        replay()
        return of_each(left, Tensor.clone)

    def used(self, shape: _Shape) -> Tensor | None:
        """Where drafts of this shape are told of used tokens; what they mark there is their own."""
        if shape.how not in self._used:
            self._used[shape.how] = shape.how.none_used(self._device)
        return self._used[shape.how]

    def prepare(self, shapes: Iterable[_Shape], advance: Advance) -> str:
        """Records those of these that are not too long, the longest first, as
        `Recordings.complete` has it.
        """
        fitting = {shape for shape in shapes if shape.length <= LONGEST}
        longest_first = sorted(fitting, key=lambda shape: (-shape.length, shape.keys))
        return self._recorded.complete(longest_first, self._record, advance)

    def _record(self, shape: _Shape) -> None:
        out = self.place_of(shape)

        def run() -> None:
            for made, place in zip(self.make(shape), out, strict=True):
                if made is not None and place is not None:
                    place.copy_(made)

        self._recorded[shape] = (self._recorded.record(run), out)


def of_each(draft: _Made, do: Callable[[Tensor], Tensor]) -> _Made:
    """What is done to each tensor of a draft."""
    kind: Any = type(draft)
    made: _Made = kind(*(None if one is None else do(one) for one in draft))
    return made
