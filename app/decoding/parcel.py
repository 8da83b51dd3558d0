"""One copy from the device to the host, whatever a round has to bring home."""

from __future__ import annotations

import torch
from torch import Tensor


class Parcel:
    """Small tensors gathered under names, copied together, and handed out as numbers."""

    def __init__(self) -> None:
        self._parts: dict[str, Tensor] = {}

    def add(self, name: str, tensor: Tensor | None) -> None:
        """Puts a tensor in; nothing for None."""
        if tensor is not None:
            self._parts[name] = tensor

    def bring_home(self) -> dict[str, list[float]]:
        """The values of each tensor, flattened. This waits for the device, once.

        They travel as the bytes that they are: one operation puts them together, whatever their
        types. The widest come first, so that each value lies where its type may.
        """
        widest_first = sorted(self._parts.items(), key=lambda part: -part[1].element_size())
        flat = [part.reshape(-1).contiguous() for _, part in widest_first]
        whole = torch.cat([part.view(torch.uint8) for part in flat]).cpu()
        home: dict[str, list[float]] = {}
        start = 0
        for (name, _), part in zip(widest_first, flat, strict=True):
            end = start + part.numel() * part.element_size()
            home[name] = whole[start:end].view(part.dtype).tolist()
            start = end
        return home
