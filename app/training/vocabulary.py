"""The tokens that a head can guess: those that its target writes most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from app.training.texts import Text


@dataclass(frozen=True, slots=True)
class DraftVocabulary:
    """Tokens in ascending order, and how much of the written text they are."""

    ids: Tensor
    """[size], int32."""
    coverage: float
    """Of the tokens that were written, the share that is among them."""


def choose_vocabulary(
    texts: Iterable[Text], size: int, *, width: int, end_ids: Sequence[int]
) -> DraftVocabulary:
    """The `size` tokens written most often, the end ids always among them; ties go by id.

    Of a target with `width` logits; all of them if it has no more.
    """
    counts = torch.zeros(width, dtype=torch.long)
    for text in texts:
        counts += torch.bincount(text.ids[text.prompt :].long(), minlength=width)[:width]
    order = counts.clone()
    order[[one for one in end_ids if one < width]] = counts.sum() + 1
    chosen = order.argsort(descending=True, stable=True)[:size].sort().values
    coverage = float(counts[chosen].sum() / counts.sum().clamp_min(1))
    return DraftVocabulary(chosen.to(torch.int32), coverage)


def places(vocabulary: Tensor, width: int) -> Tensor:
    """Where each of `width` tokens stands in the vocabulary, -1 where it does not: [width]."""
    found = torch.full((width,), -1, dtype=torch.long, device=vocabulary.device)
    found[vocabulary.long()] = torch.arange(len(vocabulary), device=vocabulary.device)
    return found
