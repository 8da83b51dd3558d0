"""What a draft head is made of, whoever trained it: what a session and its owner ask of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor, nn

from app.models.language_model import LanguageModel
from app.models.packed_linear import why_not_packed


class HeadModule(Protocol):
    """The trained layer. Attention is left to the session, which has the cache."""

    @property
    def scale(self) -> float:
        """What scores of attention are multiplied by."""
        ...

    def first(self, features: Tensor) -> Tensor:
        """What is joined with an embedding, [..., hidden], from the target's features."""
        ...

    def joined(self, embeddings: Tensor, features: Tensor) -> Tensor:
        """The layer's input [..., width] from embeddings of tokens t + 1 and features of t."""
        ...

    def vectors(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [..., heads, size], keys and values [..., shared heads, size], not yet turned."""
        ...

    def feature(self, x: Tensor, attended: Tensor) -> Tensor:
        """The predicted feature [..., hidden] from the input and what its rows gathered."""
        ...


@dataclass(frozen=True, slots=True)
class HeadParts:
    """A head as it was read, beside its target."""

    module: nn.Module
    """A `HeadModule`, not yet of the target's type and on its device."""
    logits: Callable[[Tensor], Tensor]
    """The logits [rows, vocabulary] of features [rows, hidden], once the module is there."""
    ids: Tensor
    """The target's id of each token that it can guess, ascending: [vocabulary]."""
    embeddings: nn.Embedding
    rotary: Any
    """A rotary module of transformers."""
    layers: tuple[int, ...] = ()
    """The target's layers whose inputs are its features; none: the state behind the final norm."""
    copied_rows: int = 0
    """Of the target's output layer, those that the head holds again; none where it reads them."""


def packs(target: LanguageModel) -> bool:
    """Whether the linear layers of a target's head are packed, as its own are."""
    return target.device.type == "cpu" and why_not_packed(target.dtype) is None
