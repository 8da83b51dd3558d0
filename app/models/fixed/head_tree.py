"""A draft head's whole tree of guesses as one run over tensors.

It begins where a chain does, in the feature behind the pairs of the text. Each further level feeds
a pair of the head's own for every guess that grows on, all of them at places behind the text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from app.models.fixed.head_feed import Rotation, feed_pairs
from app.models.fixed.memory import PlacedLayer
from app.models.fixed.recorder import Recordings, Run
from app.models.fixed.whole import WholeDrafts
from app.models.growing import Growing, TreeGuesses

if TYPE_CHECKING:
    from app.models.loaded_head import LoadedHead


class HeadTreeShape(NamedTuple):
    """All that the host decides of a tree, as `WholeShape` has it."""

    length: int
    """Its levels."""
    keys: int
    how: Growing


def grow_head_tree(
    head: LoadedHead,
    layer: PlacedLayer,
    rotation: Rotation,
    start: Tensor,
    feature: Tensor,
    shape: HeadTreeShape,
    used: Tensor | None,
) -> TreeGuesses:
    """Grows a tree behind so many pairs, [], what was predicted behind them, [1, hidden], and used
    tokens, as `Told.used` has them.

    Uses only tensors that stay where they are.
    """
    tree = shape.how.begin(used)
    seen = _Lineages(start, shape)
    features = feature
    tree.grow(head.logits(feature))
    for level in range(1, shape.length):
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

    def __init__(self, start: Tensor, shape: HeadTreeShape) -> None:
        """`start` [] pairs are the text's."""
        device, most = start.device, shape.how.read(shape.length)
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


class HeadTrees(WholeDrafts[HeadTreeShape, TreeGuesses]):
    """The trees that one room offers."""

    def __init__(
        self,
        compute: Callable[[HeadTreeShape, Tensor | None], TreeGuesses],
        device: torch.device,
        recordings: Recordings[HeadTreeShape, tuple[Run, TreeGuesses]],
    ) -> None:
        super().__init__(device, recordings)
        self._compute = compute

    def make(self, shape: HeadTreeShape) -> TreeGuesses:
        """As `WholeDrafts.make`, behind what the room was told too."""
        return self._compute(shape, self.used(shape))
