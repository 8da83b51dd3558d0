"""A draft head's whole chain of guesses as one run over tensors.

The pairs that are new of the text are fed before it: they end in the feature that the first guess
is taken from. Each further guess feeds a pair of the head's own, at a place behind the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from app.models.fixed.chain import ChainShape, as_chain
from app.models.fixed.head_feed import Rotation, feed_pairs
from app.models.fixed.memory import PlacedLayer
from app.models.picking import ChainGuesses

if TYPE_CHECKING:
    from app.models.loaded_head import LoadedHead


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
    for place in range(1, shape.length):
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
