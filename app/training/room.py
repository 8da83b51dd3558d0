"""Whether memory and disk hold what a training needs, told before it begins."""

from __future__ import annotations

import shutil
from pathlib import Path

import psutil
import torch

from app.library.head_folder import HeadShape
from app.models.draft_head import DraftHead
from app.run.problems import Problem
from app.run.sizes import bytes_in_words
from app.training.batches import GROUP
from app.training.course import BATCH_TOKENS
from app.training.gathering import SHARD
from app.training.learner import COPIES
from app.training.lesson import DEPTH
from app.training.soft_loss import PLACES
from app.training.writing import LONGEST

_LEAST = 64 << 20
"""Bytes of texts below which nothing could be learned."""
_LEFT = 1 << 30
"""Bytes of the disk that are left free, for checkpoint, head and others."""
_TEXT_TOKENS = 320
"""Tokens of a long text with its prompt."""
_ROWS = 8
"""Rows as wide as the layer that a lesson holds for each token and depth, gradients included."""


def head_weights(shape: HeadShape) -> int:
    """Numbers in a head of this shape."""
    with torch.device("meta"):
        return sum(one.numel() for one in DraftHead(shape).parameters())


def memory_needed(shape: HeadShape) -> int:
    """Bytes that lessons need beside the target: the learner, one lesson, texts at hand."""
    learner = 4 * COPIES * head_weights(shape)
    tokens = max(BATCH_TOKENS, LONGEST)
    lesson = 4 * DEPTH * tokens * (shape.hidden + shape.intermediate) * _ROWS
    rows = 4 * shape.vocabulary * (shape.hidden + 4 * PLACES)
    texts = 2 * GROUP * SHARD * _TEXT_TOKENS * 2 * shape.hidden
    return learner + lesson + rows + texts


def require_memory(shape: HeadShape, device: torch.device) -> None:
    """Raises Problem if the device has not enough memory free for lessons."""
    needed = memory_needed(shape)
    if device.type == "cuda":
        free = int(torch.cuda.mem_get_info(device)[0])
    else:
        free = int(psutil.virtual_memory().available)
    if free < needed:
        raise Problem(
            f"Teaching such a head needs about {bytes_in_words(needed)} of memory beside the "
            f"target; {bytes_in_words(free)} are free.",
            "Close other programs, choose a smaller draft vocabulary, or a smaller target.",
        )


def bytes_for_texts(folder: Path, gib: float, held: int) -> int:
    """The bytes that the texts may take in all, of which the folder holds `held` already.

    As many as were granted, less if the disk would be full before. Raises Problem if either is too
    little.
    """
    granted = int(gib * (1 << 30))
    if granted < _LEAST:
        raise Problem(
            f"{gib:g} GiB are too little for texts to learn from.", "Grant at least 0.1 GiB."
        )
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if held + free - _LEFT < min(granted, max(held, _LEAST)):
        raise Problem(
            f"The disk of {folder} has {bytes_in_words(free)} free: too little for texts and a "
            "checkpoint.",
            "Make room on it, or choose a folder on another disk.",
        )
    return min(granted, held + free - _LEFT)
