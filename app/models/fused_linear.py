"""Linear layers that read the same input, packed as one: one call to a kernel instead of three."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from app.models.mapped_memory import let_go, return_free_memory
from app.models.packed_linear import Advance, packed, unwatched

_GROUPS = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))
"""The layers of Llama and its kin that are fused, by name, in the order of their rows."""


class FusedLinear(nn.Module):
    """Several linear layers as one; remembers its last answer until each part has taken its own."""

    def __init__(self, plain: list[nn.Linear], held: torch.dtype) -> None:
        super().__init__()
        self.whole = packed(plain, held)
        self._asked: Tensor | None = None
        self._answer: Tensor | None = None

    def part(self, x: Tensor, rows: slice) -> Tensor:
        """Some rows of the answer to x [..., in]."""
        if self._answer is None or x is not self._asked:
            self._asked, self._answer = x, self.whole(x)
        answer = self._answer[..., rows]
        if rows.stop == self.whole.out_features:  # the last part: no one else will ask
            self._asked = self._answer = None
        return answer


class FusedPart(nn.Module):
    """One of the layers that were fused: it answers as it did, so that its model still works."""

    def __init__(self, fused: FusedLinear, start: int, out_features: int) -> None:
        super().__init__()
        self.fused = fused
        self.in_features = fused.whole.in_features
        self.out_features = out_features
        self._rows = slice(start, start + out_features)

    @property
    def weight(self) -> Tensor:
        """The weights of this part, [out, in]: a copy, made at every call."""
        return self.fused.whole.weight[self._rows]

    @property
    def bias(self) -> Tensor | None:
        """The bias of this part, [out]."""
        whole = self.fused.whole.bias
        return None if whole is None else whole[self._rows]

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in] to [..., out]."""
        return self.fused.part(x, self._rows)


def fuse(model: nn.Module, held: torch.dtype, advance: Advance = unwatched) -> None:
    """Fuses and packs the layers of a model that read one input: queries, keys, values, and so on.

    Their weights come out in `held`, as those of `pack` do. One group at a time, and what it was
    made from is let go of before the next.
    """
    for parent in list(model.modules()):
        for names in _GROUPS:
            plain = [getattr(parent, name, None) for name in names]
            linear = [layer for layer in plain if type(layer) is nn.Linear]
            biased = {layer.bias is not None for layer in linear}
            if len(linear) == len(names) and len(biased) == 1:
                advance(len(linear))
                _fuse_group(parent, names, linear, held=held)
                for layer in linear:
                    let_go(layer.weight)
                del plain, linear
                return_free_memory()


def _fuse_group(
    parent: nn.Module, names: tuple[str, ...], plain: list[nn.Linear], *, held: torch.dtype
) -> None:
    fused = FusedLinear(plain, held)
    start = 0
    for name, layer in zip(names, plain, strict=True):
        setattr(parent, name, FusedPart(fused, start, layer.out_features))
        start += layer.out_features
