"""Texts laid side by side for a lesson: like lengths together, in an order that a seed decides."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from app.training.texts import Text, TextFolder

GROUP = 8
"""Shards in memory at a time; their texts are mixed."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Whole texts, padded behind their ends."""

    ids: Tensor
    """[rows, length], 0 in the padding."""
    best: Tensor
    """The target's likeliest token behind each; -1 in prompts and padding: [rows, length]."""
    features: Tensor
    """The target's: [rows, length, hidden]."""
    prompts: Tensor
    """Tokens of each prompt: [rows]."""
    tokens: int
    """Tokens that were written, in all."""

    def to(self, device: torch.device) -> Batch:
        """The same on a device."""
        return Batch(
            self.ids.to(device),
            self.best.to(device),
            self.features.to(device),
            self.prompts.to(device),
            self.tokens,
        )


def batch_of(texts: Sequence[Text]) -> Batch:
    """These texts as one batch."""
    shape = len(texts), max(map(len, texts))
    ids = torch.zeros(shape, dtype=torch.long)
    best = torch.full(shape, -1, dtype=torch.long)
    features = texts[0].features.new_zeros((*shape, texts[0].features.shape[-1]))
    for row, text in enumerate(texts):
        ids[row, : len(text)] = text.ids
        best[row, : len(text)] = text.best
        features[row, : len(text)] = text.features
    prompts = torch.tensor([text.prompt for text in texts])
    return Batch(ids, best, features, prompts, sum(text.written for text in texts))


def side_by_side(texts: Sequence[Text], tokens: int) -> list[list[Text]]:
    """All texts, shortest first, divided so that none has more tokens, padding included.

    A text that is longer than that stands alone.
    """
    divided: list[list[Text]] = []
    for text in sorted(texts, key=len):
        if not divided or (len(divided[-1]) + 1) * len(text) > tokens:
            divided.append([])
        divided[-1].append(text)
    return divided


def epoch(
    folder: TextFolder, shards: Sequence[Path], *, seed: str, tokens: int, skip: int = 0
) -> Iterator[Batch]:
    """Every text of these shards once, the first `skip` batches left out.

    The same for the same seed. Raises Problem for a shard that cannot be read.
    """
    chance = random.Random(seed)
    order = chance.sample(shards, len(shards))
    for start in range(0, len(order), GROUP):
        texts = list(folder.read(order[start : start + GROUP]))
        chance.shuffle(texts)
        divided = side_by_side(texts, tokens)
        chance.shuffle(divided)
        yield from map(batch_of, divided[skip:])
        skip = max(skip - len(divided), 0)
