"""From a wish for a head to a head: finds and loads the target, then writes and teaches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from app.library.catalogue import Catalogue
from app.library.head_folder import MadeFor, fingerprint
from app.library.preflight import check
from app.library.sources import fetch
from app.library.training_folder import own_prompts, target_entry
from app.models.exhausted import memory_guard
from app.models.loading import load_weights
from app.models.machine import choose_device, make_current
from app.models.packed_linear import why_not_packed
from app.models.precision import settle_precision
from app.models.stages import Pause, Report, Stages
from app.models.tokenizer import Tokenizer
from app.run.problems import DoesNotFit, Problem, release_frames
from app.run.settings import Precision
from app.run.teaching import CurvePoint, Taught, Teach
from app.training.gathering import Source
from app.training.schedule import Span
from app.training.training import Plan, Training

Point = Callable[[CurvePoint], None]

_SMALLER = (
    "Close other programs that use the device, and the same command goes on; or choose a smaller "
    "draft vocabulary (--draft-vocabulary), or a smaller target or precision, for a new folder."
)
"""What to do if memory is exhausted; a folder goes on with what it was begun with."""


def teach(
    catalogue: Catalogue, wanted: Teach, *, report: Report, point: Point, pause: Pause
) -> Taught:
    """Makes the head that is wanted, or goes on with it.

    Raises Problem for what a person can mend, Cancelled when `pause` does.
    """
    check_wish(wanted)
    prompts = own_prompts(wanted.prompts)
    entry = target_entry(catalogue, wanted.target)
    device = choose_device(wanted.device)
    make_current(device)
    facts = check(fetch(entry, report, pause=pause))
    usual = None if facts.quantised else _precision(device)
    precision, _ = settle_precision(facts, wanted.precision or usual, device)
    stages = Stages(report, pause)
    model = load_weights(facts, name=entry.title, precision=precision, device=device, stages=stages)
    source = Source(model, Tokenizer(facts.folder), facts.end_ids, wanted.seed, prompts)
    seconds = wanted.minutes * 60
    plan = Plan(
        writing_seconds=seconds * wanted.writing_share,
        span=Span(seconds=seconds * (1 - wanted.writing_share)),
        draft_vocabulary=wanted.draft_vocabulary,
        disk_gib=wanted.disk_gib,
        licence=entry.licence,
    )
    made_for = MadeFor(entry.title, fingerprint(facts), model.width)
    training = Training(source, made_for, plan, Path(wanted.out))
    try:
        with memory_guard("in training"):
            return training.run(report=report, point=point, pause=pause)
    except DoesNotFit as short:
        release_frames(short)
        raise DoesNotFit(
            f"{short.message} What was written and taught up to the last minute is kept.", _SMALLER
        ) from None


def check_wish(wanted: Teach) -> None:
    """Raises Problem for numbers that make no sense."""
    if not wanted.minutes > 0:
        raise Problem(f"{wanted.minutes:g} minutes are no time.", "Give at least some minutes.")
    if not 0 <= wanted.writing_share < 1:
        raise Problem(
            f"The writing share is {wanted.writing_share:g}.", "Choose one from 0 to below 1."
        )
    if wanted.draft_vocabulary < 2:
        raise Problem(
            f"A draft vocabulary of {wanted.draft_vocabulary} cannot guess.",
            "Choose some thousands of tokens.",
        )


def _precision(device: torch.device) -> Precision | None:
    """What a CPU writes in: bf16 if it can compute in it; None for the usual choice."""
    return "bf16" if device.type == "cpu" and why_not_packed(torch.bfloat16) is None else None
