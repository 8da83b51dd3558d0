"""A draft head's whole tree of guesses as one run over tensors.

It begins where a chain does, in the feature behind the pairs of the text. Each further level feeds
a pair of the head's own for every guess that grows on, all of them at places behind the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from app.models.causal_model import Advance
from app.models.fixed.chain import LONGEST
from app.models.fixed.head_feed import Rotation, feed_pairs
from app.models.fixed.memory import PlacedLayer
from app.models.fixed.recorder import Recorder, Recordings, Run
from app.models.growing import Growing, TreeGuesses

if TYPE_CHECKING:
    from app.models.loaded_head import LoadedHead


class GrowthShape(NamedTuple):
    """All that the host decides of a tree."""

    levels: int
    keys: int
    """Keys that attention sums over, at each level."""
    how: Growing


def grow_head_tree(
    head: LoadedHead,
    layer: PlacedLayer,
    rotation: Rotation,
    start: Tensor,
    feature: Tensor,
    shape: GrowthShape,
) -> TreeGuesses:
    """Grows a tree behind so many pairs, [], and what was predicted behind them, [1, hidden].

    Uses only tensors that stay where they are.
    """
    tree = shape.how.begin()
    seen = _Lineages(start, shape)
    features = feature
    tree.grow(head.logits(feature))
    for level in range(1, shape.levels):
        tree.extend_beam()
        assert tree.beam.tree is not None
        fed = len(features) - 1
        behind = tree.beam.tree.parents[fed:] + 1
        places = start + torch.arange(fed, len(tree.beam), device=start.device)
        found = feed_pairs(
            head,
            layer,
            rotation,
            tree.beam.tensor(fed),
            features.index_select(0, behind),
            places=places,
            positions=(start + (level - 1)).reshape(1),
            keys=shape.keys,
            hidden=seen.hidden(behind),
        )
        features = torch.cat([features, found])
        tree.grow(head.logits(found))
    return tree.best()


class _Lineages:
    """What the text, and each guess that was fed behind it, may see of a memory."""

    def __init__(self, start: Tensor, shape: GrowthShape) -> None:
        """`start` [] pairs are the text's."""
        device, most = start.device, shape.how.read(shape.levels)
        keys = torch.arange(shape.keys, device=device)
        self._columns = (keys - start + 1).clamp(0, most + 1)
        """Where it stands for each key below whether it is seen: [keys]."""
        self._seen = torch.zeros((1, most + 2), dtype=torch.bool, device=device)
        """Of the text and each guess, whether it sees the text, each guess, and what lies behind
        all of them.
        """
        self._seen[:, 0] = True

    def hidden(self, behind: Tensor) -> Tensor:
        """Which keys are hidden from guesses that are fed now, [guesses, keys]: each sees itself
        and what is seen where it stands `behind` [guesses], 0 for the text, else 1 + a guess.
        """
        own = torch.arange(len(self._seen), len(self._seen) + len(behind), device=behind.device)
        seen = self._seen.index_select(0, behind).scatter_(1, own[:, None], True)
        self._seen = torch.cat([self._seen, seen])
        return ~seen.index_select(1, self._columns)


class HeadTrees:
    """The trees that one room offers: computed each time, or recorded and replayed."""

    def __init__(
        self, compute: Callable[[GrowthShape], TreeGuesses], recorder: Recorder | None
    ) -> None:
        self._compute = compute
        self._recorder = recorder
        self._recorded: Recordings[GrowthShape, tuple[Run, TreeGuesses]] = Recordings()

    def holds(self, shape: GrowthShape) -> bool:
        """Whether such a tree can be had now."""
        if self._recorder is None:
            return 0 < shape.levels <= LONGEST
        return shape in self._recorded

    def answer(self, shape: GrowthShape) -> TreeGuesses:
        """The tree behind what the room has been told."""
        if self._recorder is None:
            return self._compute(shape)
        replay, left = self._recorded[shape]
        replay()
        return TreeGuesses(*(one.clone() for one in left))

    def prepare(self, shapes: Sequence[GrowthShape], advance: Advance) -> str:
        """Records these, the deepest first, as `Recordings.complete` has it."""
        deepest_first = sorted(set(shapes), key=_deepest_first)
        return self._recorded.complete(deepest_first, self._record, advance)

    def _record(self, shape: GrowthShape) -> None:
        assert self._recorder is not None
        out = TreeGuesses(*(torch.empty_like(one) for one in self._compute(shape)))

        def run() -> None:
            for made, place in zip(self._compute(shape), out, strict=True):
                place.copy_(made)

        self._recorded[shape] = (self._recorder.record(run), out)


def _deepest_first(shape: GrowthShape) -> tuple[int, int]:
    return -shape.levels, shape.keys
