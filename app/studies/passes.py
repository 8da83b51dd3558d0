"""What a pass of the target costs by its width, and a step of the draft, measured here."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch

from app.decoding.clock import clock_for
from app.models.language_model import LanguageModel
from app.models.machine import device_name, processor_name
from app.models.pair import LoadedPair
from app.models.session import Block, Session
from app.run.cost import SMALLEST_BUCKET, PassCosts

REPEATS = 9
"""Passes behind each median; the widths take turns, so that drift hits them alike."""

Pause = Callable[[], None]


def measure_passes(
    pair: LoadedPair, longest_draft: int, *, context: int = SMALLEST_BUCKET, pause: Pause
) -> PassCosts:
    """Median seconds of passes of 1 to `longest_draft` + 1 rows behind a context of this length."""
    target = pair.target.model
    held = min(context, target.context_length - longest_draft - 1)
    widths = range(1, longest_draft + 2)
    seconds = _by_width(target, held, widths, pause=pause)
    draft = pair.draft
    step = None
    if draft is not None:
        held = min(held, draft.model.context_length - 1)
        step = _by_width(draft.model, held, range(1, 2), pause=pause)[1]
    device = device_name(target.device)
    if target.device.type == "cpu":
        device = f"{processor_name()}, {torch.get_num_threads()} threads"
    return PassCosts(
        model=target.name,
        device=device,
        precision=target.precision,
        attention=target.attention,
        context_bucket=context,
        seconds=seconds,
        repeats=REPEATS,
        draft=draft.model.name if draft else None,
        draft_step=step,
    )


def _by_width(
    model: LanguageModel, context: int, widths: range, *, pause: Pause
) -> dict[int, float]:
    """Median seconds by width, after one warm-up of each."""
    text = [(7 * place) % model.rows for place in range(context)]
    session = model.open(context + max(widths))
    session.read(text[:-1], rows=1)
    taken: dict[int, list[float]] = {width: [] for width in widths}
    for _ in range(REPEATS + 1):
        for width in widths:
            pause()
            taken[width].append(_seconds(model, session, text, width=width))
    return {width: median(times[1:]) for width, times in taken.items()}


def _seconds(model: LanguageModel, session: Session, text: list[int], *, width: int) -> float:
    clock = clock_for(model.device)
    guesses = Block([1] * (width - 1), device=model.device)
    clock.wait()
    start = clock.now()
    session.read(text, guesses, rows=width)
    clock.wait()
    return clock.now() - start
