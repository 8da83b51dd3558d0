"""How a proposer draws its guesses: with draws of its own, or with the noise of the place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from app.decoding.randomness import draw
from app.decoding.sampling import pick
from app.decoding.shared_noise import SharedNoise


@dataclass(frozen=True, slots=True)
class GuessDraws:
    """The draws of one lane's guesses."""

    seed: int
    shared: bool = False
    """Whether target and draft draw with the same noise, as the coupled rule asks."""

    def uniforms(self, count: int, *, round_: int) -> list[float]:
        """The draws of a draft's first slots, where no noise is shared."""
        return [draw(self.seed, "draft", round_, slot) for slot in range(count)]

    def pick(self, law: Tensor, text: Sequence[int], *, round_: int, slot: int) -> Tensor:
        """The guess [] of a law [width], in this slot of the draft behind the text. With shared
        noise the law is over the target's ids.
        """
        if self.shared:
            return SharedNoise(self.seed, len(text) + slot).pick(law[None]).squeeze(0)
        return pick(law, draw(self.seed, "draft", round_, slot))

    def picks(self, laws: Tensor, text: Sequence[int], *, round_: int, slot: int) -> Tensor:
        """The guesses [rows] of laws [rows, width] in the slots from this one on: each is what
        `pick` gives there.
        """
        guesses = [
            self.pick(law, text, round_=round_, slot=slot + row) for row, law in enumerate(laws)
        ]
        return torch.stack(guesses)
