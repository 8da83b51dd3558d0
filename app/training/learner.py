"""A head that learns: its weights, their running average, and what the optimiser remembers."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from app.models.draft_head import DraftHead

PEAK = 1e-3
"""The largest learning rate."""
_BETAS = 0.9, 0.95
_DECAY = 0.01
_LARGEST = 1.0
"""The longest gradient; a longer one is shortened to it."""
_AVERAGED = 0.995
"""What the running average keeps of itself at each step."""

COPIES = 7
"""Numbers held for each weight: it, its average, its best, two moments, its gradients, a copy."""


class Learner:
    """AdamW on a head, and an average of its late weights, which is what is judged and kept."""

    def __init__(self, head: DraftHead, dtype: torch.dtype = torch.float32) -> None:
        """`head` is in fp32; it is in `dtype` that its losses are computed."""
        self.head = head
        self.working = head if dtype == torch.float32 else deepcopy(head).to(dtype)
        """What losses are to be taken of."""
        self.averaged = deepcopy(head).requires_grad_(False)
        fused = next(head.parameters()).device.type in ("cpu", "cuda")
        weights: list[Tensor] = list(head.parameters())
        matrices = [one for one in weights if one.dim() > 1]
        others = [one for one in weights if one.dim() == 1]
        groups: list[dict[str, Any]] = [
            {"params": matrices},
            {"params": others, "weight_decay": 0.0},
        ]
        self._optimiser = torch.optim.AdamW(
            groups,
            lr=PEAK,
            betas=_BETAS,
            weight_decay=_DECAY,
            fused=fused,
        )

    def step(self, loss: Tensor, *, rate: float, number: int) -> None:
        """Learns from one loss of the working head. `number` counts steps from 0."""
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        loss.backward()  # type: ignore[no-untyped-call]
        self._take_gradients()
        nn.utils.clip_grad_norm_(self.head.parameters(), _LARGEST)
        self._optimiser.step()
        self._optimiser.zero_grad()
        kept = min(_AVERAGED, (1 + number) / (10 + number))
        with torch.no_grad():
            pairs = zip(self.averaged.parameters(), self.head.parameters(), strict=True)
            for mean, weight in pairs:
                mean.lerp_(weight, 1 - kept)
        self._refresh()

    def _take_gradients(self) -> None:
        """Brings the working head's gradients to the weights that are kept in fp32."""
        if self.working is not self.head:
            pairs = zip(self.head.parameters(), self.working.parameters(), strict=True)
            for weight, working in pairs:
                weight.grad = None if working.grad is None else working.grad.float()
                working.grad = None

    @torch.no_grad()
    def _refresh(self) -> None:
        """Gives the working head the weights as they are now."""
        if self.working is not self.head:
            pairs = zip(self.head.parameters(), self.working.parameters(), strict=True)
            for weight, working in pairs:
                working.copy_(weight)

    def tensors(self) -> dict[str, Tensor]:
        """All that has to be kept to go on, by name."""
        found: dict[str, Tensor] = {}
        for name, weight in self.head.named_parameters():
            found[f"head.{name}"] = weight.detach()
            for part, value in self._optimiser.state.get(weight, {}).items():
                found[f"{part}.{name}"] = value
        for name, weight in self.averaged.named_parameters():
            found[f"averaged.{name}"] = weight
        return found

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Goes on from what `tensors` returned. Raises KeyError if something is missing."""
        for name, weight in self.averaged.named_parameters():
            weight.copy_(tensors[f"averaged.{name}"])
        for name, weight in self.head.named_parameters():
            weight.copy_(tensors[f"head.{name}"])
            if f"step.{name}" in tensors:
                self._optimiser.state[weight] = {
                    part: tensors[f"{part}.{name}"].to(weight.device, copy=True)
                    for part in ("step", "exp_avg", "exp_avg_sq")
                }
        self._refresh()
