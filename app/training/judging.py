"""How good a head is: the share of its guesses, by depth, that its target would keep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import mul

import torch
from torch import Tensor

from app.models.draft_head import DraftHead
from app.training.batches import Batch
from app.training.lesson import Teacher
from app.training.unrolled import unrolled

JUDGED_DEPTH = 4


@torch.no_grad()
def acceptance(
    teacher: Teacher, head: DraftHead, batches: Sequence[Batch], *, depth: int = JUDGED_DEPTH
) -> tuple[float, ...]:
    """For each depth, of the guesses whose forerunners were kept, the share that is kept too.

    Over texts that the target wrote greedily, with a greedy draft from every place: while all its
    guesses are right, what it would feed is what the text says. The head is in the teacher's type.
    """
    kept = torch.zeros(depth, dtype=torch.long)
    tried = torch.zeros(depth, dtype=torch.long)
    for batch in batches:
        some_kept, some_tried = _counts(teacher, head, batch.to(teacher.device), depth)
        kept += some_kept.cpu()
        tried += some_tried.cpu()
    return tuple((kept / tried.clamp_min(1)).tolist())


def kept_guesses(shares: Sequence[float]) -> float:
    """How many guesses of a draft as deep as the shares are kept, on average."""
    products: Iterable[float] = accumulate(shares, mul)
    return sum(products)


def _counts(teacher: Teacher, head: DraftHead, batch: Batch, depth: int) -> tuple[Tensor, Tensor]:
    """Guesses kept and guesses whose forerunners were kept, by depth."""
    rows, length = batch.ids.shape
    place = torch.arange(length, device=batch.ids.device)[None]
    running = (place >= batch.prompts[:, None] - 1).expand(rows, length)
    kept, tried = [], []
    steps = unrolled(
        head,
        teacher.rotary,
        teacher.embed(batch.ids),
        batch.features.to(teacher.dtype),
        depth=depth,
    )
    for step, features in enumerate(steps, start=1):
        due = batch.best[:, step:]
        running = running[:, : due.shape[1]] & (due >= 0)
        guesses = torch.full_like(due, -1)
        asked = running.nonzero(as_tuple=True)
        guesses[asked] = teacher.vocabulary[teacher.logits(features[asked]).argmax(dim=-1)]
        tried.append(running.sum())
        running = running & (guesses == due)
        kept.append(running.sum())
    return torch.stack(kept), torch.stack(tried)
