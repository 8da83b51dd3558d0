"""What one more guess beside a target costs, of a draft head or of the target's first layers,
measured here behind a context.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch

from app.decoding.clock import clock_for
from app.decoding.contracts import row_at
from app.models.early_exit import EarlyExit
from app.models.loaded_head import LoadedHead
from app.models.session import MAX_CHUNK, Block

_STEPS = 24
"""Guesses behind the median, after one that only warms up."""


def time_steps(head: LoadedHead | EarlyExit, *, context: int, pause: Callable[[], None]) -> float:
    """Median seconds of one more guess, its choice included, behind a context of so many tokens.

    Raises Cancelled when `pause` does, Problem if memory does not suffice.
    """
    target, clock = head.target, clock_for(head.device)
    length = max(min(context, target.context_length - _STEPS - 2), 2)
    text = [(7 * place) % target.rows for place in range(length)]
    session = head.open_target(length + _STEPS + 1)
    for upto in [*range(MAX_CHUNK, length - 1, MAX_CHUNK), length - 1]:
        pause()
        session.read(text, rows=1, upto=upto)
    beside = head.open(session, length + _STEPS + 1)
    block = Block(device=head.device)
    taken = []
    for step in range(_STEPS + 2):
        pause()
        clock.wait()
        start = clock.now()
        with torch.inference_mode():
            guess = beside.read(text, block, rows=1).logits[0].argmax()
            block.append(row_at(head.ids, guess))
        clock.wait()
        if step > 1:  # the first has read the context, the second warmed up
            taken.append(clock.now() - start)
    return median(taken)
