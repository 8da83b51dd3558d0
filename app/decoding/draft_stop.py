"""When a draft ends before its limit. Both stops ask the device for a number at every guess.

A guess that was drawn may not be dropped because of what it is: the texts would no longer follow
the target's law. So a stop either looks at the law before a guess is drawn from it, or comes behind
a guess that is tested all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class DraftStop(Protocol):
    """Ends a draft early."""

    def before(self, law: Callable[[], Tensor]) -> str:
        """Why no guess is to be drawn from this law [width], which is computed once, when it is
        first asked for; empty to go on.
        """
        ...

    def behind(self, probability: Tensor) -> str:
        """Why the draft ends behind a guess of this probability []; empty to go on."""
        ...


@dataclass(frozen=True, slots=True)
class ConfidenceStop:
    """Ends a draft behind a guess that the draft itself finds unlikely.

    Source: transformers' `assistant_confidence_threshold`.
    """

    threshold: float

    def before(self, law: Callable[[], Tensor]) -> str:
        """Never ends it here."""
        return ""

    def behind(self, probability: Tensor) -> str:
        """Ends it if the draft's own probability of the guess is below the threshold."""
        return "the draft was unsure" if float(probability) < self.threshold else ""


@dataclass(frozen=True, slots=True)
class EntropyStop:
    """Ends a draft where the bound 1 - √(λ·H(q)) below the chance to be kept is too small.

    Source: AdaEDL, Agrawal et al. 2024 (arXiv 2410.18351), section 3; the threshold stays fixed.
    """

    factor: float
    threshold: float

    def before(self, law: Callable[[], Tensor]) -> str:
        """Ends it by the law's entropy in nats, before anything is drawn."""
        chances = law()
        entropy = -torch.xlogy(chances, chances).sum()
        bound = 1.0 - float((self.factor * entropy).sqrt())
        return "the draft's entropy was high" if bound < self.threshold else ""

    def behind(self, probability: Tensor) -> str:
        """Never ends it here."""
        return ""
