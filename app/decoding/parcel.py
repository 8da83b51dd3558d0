"""One copy from the device to the host, whatever a round has to bring home."""

from __future__ import annotations

import torch
from torch import Tensor


class Parcel:
    """Small tensors gathered under names, copied together, and handed out as numbers."""

    def __init__(self) -> None:
        self._parts: dict[str, Tensor] = {}

    def add(self, name: str, tensor: Tensor | None) -> None:
        """Puts a tensor in; nothing for None. Ids up to 2^24 survive exactly on every device."""
        if tensor is not None:
            self._parts[name] = tensor

    def bring_home(self) -> dict[str, list[float]]:
        """The values of each tensor, flattened. This waits for the device, once."""
        parts = list(self._parts.values())
        exact = torch.float32 if parts[0].device.type == "mps" else torch.float64
        flat = torch.cat([part.reshape(-1).to(exact) for part in parts]).tolist()
        home: dict[str, list[float]] = {}
        start = 0
        for name, part in self._parts.items():
            home[name] = flat[start : start + part.numel()]
            start += part.numel()
        return home
