"""Rotary positions, computed once for all that a text has reached."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_FIRST = 512
"""Positions of the first table; each next one doubles."""


class RotaryTable:
    """Cosines and sines by position, as a rotary module of transformers computes them."""

    def __init__(self, rotary: Any) -> None:
        self._rotary = rotary
        self._length = 0
        self._cosines = self._sines = torch.empty(0)
        self._read_by_graphs: list[Tensor] = []
        """Shorter tables: a graph that was recorded over one goes on to read it."""

    def between(self, start: int, end: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Cosines and sines of positions start..end, [n, 1, size]; a first half's sine is negated.

        So a vector is turned by x * cosines + (x with its halves swapped) * sines.
        """
        self._reach(end, dtype)
        return self._cosines[start:end], self._sines[start:end]

    def at(self, places: Tensor, end: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The same of positions [n], all of which lie before `end`."""
        self._reach(end, dtype)
        return self._cosines.index_select(0, places), self._sines.index_select(0, places)

    def _reach(self, end: int, dtype: torch.dtype) -> None:
        if end > self._length or dtype != self._cosines.dtype:
            self._grow(max(end, 2 * self._length, _FIRST), dtype)

    def _grow(self, length: int, dtype: torch.dtype) -> None:
        device = self._rotary.inv_freq.device
        if device.type == "cuda":
            self._read_by_graphs += [self._cosines, self._sines]
        like = torch.empty(0, dtype=dtype, device=device)
        cosines, sines = self._rotary(like, torch.arange(length, device=device)[None])
        half = sines.shape[-1] // 2
        sines = torch.cat([-sines[..., :half], sines[..., half:]], dim=-1)
        self._cosines, self._sines = cosines[0, :, None], sines[0, :, None]
        self._length = length
