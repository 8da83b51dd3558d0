"""One lesson: a head guesses at every place of some texts, and is told how far off it is."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from app.models.draft_head import DraftHead
from app.models.packed_linear import why_not_packed
from app.models.rotary_table import RotaryTable
from app.training.batches import Batch
from app.training.soft_loss import soft_loss
from app.training.unrolled import unrolled
from app.training.vocabulary import places

DEPTH = 3
"""Steps that a head goes on from its own features while it learns."""
LATER = 0.8
"""What a depth weighs, as a multiple of the depth before: it is reached only through that."""


class Teacher:
    """What a target knows that a head is taught by: embeddings, output rows, rotary positions."""

    def __init__(self, inner: Any, vocabulary: Tensor, *, dtype: torch.dtype | None = None) -> None:
        """`vocabulary` is what the head can guess, [size]; `dtype` what is computed in."""
        embeddings = inner.get_input_embeddings()
        self.device = torch.device(embeddings.weight.device)
        self.dtype = dtype or _computing_dtype(self.device)
        self.vocabulary = vocabulary.long().to(self.device)
        output = inner.get_output_embeddings()
        self.rotary = RotaryTable(inner.model.rotary_emb)
        self._embeddings = embeddings.weight.detach()
        self._rows = output.weight.detach()[self.vocabulary].to(self.dtype)
        self._places = places(self.vocabulary, int(output.out_features))

    def embed(self, ids: Tensor) -> Tensor:
        """Embeddings of ids [...]: [..., hidden]."""
        found: Tensor = functional.embedding(ids, self._embeddings)
        return found.to(self.dtype)

    def logits(self, features: Tensor) -> Tensor:
        """Logits over the vocabulary, of features [..., hidden]."""
        found: Tensor = features.to(self.dtype) @ self._rows.T
        return found

    def losses(self, head: DraftHead, batch: Batch, *, depth: int = DEPTH) -> Tensor:
        """The loss of each depth, [depth]: soft cross-entropy with the target's law, in nats.

        Counted where the target was asked and its likeliest token is in the vocabulary. The head
        is in the teacher's type.
        """
        known = (batch.best >= 0) & (self._places[batch.best.clamp_min(0)] >= 0)
        known[:, :depth] = False
        where = known.flatten().nonzero()[:, 0]
        features = batch.features.to(self.dtype)
        steps = unrolled(head, self.rotary, self.embed(batch.ids), features, depth=depth)
        predicted = [one.flatten(0, 1)[where - step] for step, one in enumerate(steps, start=1)]
        return soft_loss(predicted, features.flatten(0, 1)[where], self._rows)


def weighted(losses: Tensor) -> Tensor:
    """The losses of all depths as one."""
    weights = LATER ** torch.arange(len(losses), device=losses.device)
    total: Tensor = (losses * weights).sum()
    return total


def _computing_dtype(device: torch.device) -> torch.dtype:
    """bf16 where matrices are multiplied faster in it, else fp32."""
    if device.type == "cpu":
        return torch.float32 if why_not_packed(torch.bfloat16) else torch.bfloat16
    if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.bfloat16
    return torch.float32
