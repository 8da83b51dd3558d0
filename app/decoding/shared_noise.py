"""Noise that belongs to a place in the text: whoever draws there, draws with the same noise.

The token of a law is the first arrival of a race: token x arrives after e_x / law(x), where e_x is
an exponential draw that depends on seed, place and x alone. The first arrival follows the law
(Gumbel's trick, as -log e_x is Gumbel noise), and two laws that are alike mostly have the same one.
Source: Daliri, Musco, Suresh 2024 (arXiv 2408.07978), section 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from app.decoding.randomness import base_state
from app.models.machine import on_device
from app.models.tree import Tree

_STEP = 0x9E3779B97F4A7C15 - (1 << 64)
_FIRST = 0xBF58476D1CE4E5B9 - (1 << 64)
_SECOND = 0x94D049BB133111EB - (1 << 64)


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """The noise of the places from `position` on, which counts the tokens before it."""

    seed: int
    position: int

    def pick(self, law: Tensor, tree: Tree | None = None) -> Tensor:
        """The tokens [rows] of laws [rows, width] at the places from `position` on; those behind
        the first may belong to guesses that branch.
        """
        rows, width = law.shape
        if tree is None:
            return (law / self.times(rows, width, device=law.device)).argmax(dim=-1)
        times = self.times(tree.levels + 1, width, device=law.device)
        return (law / times[functional.pad(tree.depths, (1, 0))]).argmax(dim=-1)

    def times(self, rows: int, width: int, *, device: torch.device) -> Tensor:
        """The exponential draws [rows, width] of these places: fp64 where the device has it."""
        bases = [
            _signed(base_state(self.seed, "shared", self.position + row)) for row in range(rows)
        ]
        tokens = _mix(torch.arange(width, device=device))
        state = _mix(on_device(bases, torch.long, device)[:, None] ^ tokens)
        if device.type == "mps":
            return -torch.log((_shifted(state, 41).float() * 2 + 1) / (1 << 24))
        return -torch.log((_shifted(state, 12).double() * 2 + 1) / (1 << 53))


NO_SEED = SharedNoise(0, 0)
"""For rules that share no noise."""


def _mix(value: Tensor) -> Tensor:
    """SplitMix64 on int64, whose products wrap as they should."""
    value = value + _STEP
    value = (value ^ _shifted(value, 30)) * _FIRST
    value = (value ^ _shifted(value, 27)) * _SECOND
    return value ^ _shifted(value, 31)


def _shifted(value: Tensor, by: int) -> Tensor:
    """Shifted to the right as if it had no sign."""
    return (value >> by) & ((1 << (64 - by)) - 1)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
