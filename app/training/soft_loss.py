"""How far a head's laws are from its target's, and which way they should move.

Cross-entropy with soft labels over thousands of tokens, at several depths of every place, is most
of a lesson's work. Here each law exists only for some places at a time, and its gradient is taken
at once. With the target's law p, the head's q and output rows W, the gradient of a feature is
q W - p W; p W is computed once for all depths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

PLACES = 256
"""Places whose laws exist at a time."""


class _SoftLoss(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, predicted: Tensor, features: Tensor, rows: Tensor) -> Tensor:
        depth, places = predicted.shape[:2]
        losses = torch.zeros(depth, device=predicted.device)
        gradient = torch.empty_like(predicted)
        for start in range(0, places, PLACES):
            some = slice(start, start + PLACES)
            law = torch.softmax(features[some] @ rows.T, dim=-1)
            expected = law @ rows
            for step in range(depth):
                mine = predicted[step, some]
                logits = mine @ rows.T
                law = torch.softmax(logits, dim=-1)
                gradient[step, some] = law @ rows - expected
                # The likeliest token tells the logarithm of the sum, without another pass.
                total = logits.amax(dim=-1).float() - law.amax(dim=-1).float().log()
                losses[step] += (total - (mine.float() * expected.float()).sum(dim=-1)).sum()
        context.save_for_backward(gradient)
        context.places = places
        return losses / max(places, 1)

    @staticmethod
    def backward(context: Any, weights: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = context.saved_tensors
        shares = (weights / max(context.places, 1)).to(gradient.dtype)
        return gradient * shares[:, None, None], None, None


def soft_loss(predicted: Sequence[Tensor], features: Tensor, rows: Tensor) -> Tensor:
    """The mean cross-entropy, in nats, of each depth's law with the target's: [depths].

    Predicted features and the target's `features` are [places, hidden], output rows are
    [vocabulary, hidden]; all are brought to the type of `rows`.
    """
    stacked = torch.stack(list(predicted)).to(rows.dtype)
    answer: Tensor = _SoftLoss.apply(stacked, features.to(rows.dtype), rows)  # type: ignore[no-untyped-call]
    return answer
