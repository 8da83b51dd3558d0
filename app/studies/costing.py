"""The costs of a pair at a context: kept from an earlier time where they were, else measured."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import torch

from app.files import cache_folder
from app.models.early_exit import EarlyExit
from app.models.language_model import LanguageModel
from app.models.machine import device_name, processor_name
from app.models.pair import LoadedPair
from app.run.cost import CostKey, PassCosts
from app.run.events import Progress
from app.run.methods import Drafter
from app.run.tree_shape import TreeShape
from app.studies.head_steps import StepTimes
from app.studies.passes import Pause, Timings, passes_of, reached, time_passes
from app.studies.whole_times import WholeAsked

SHORTEST = 8
"""Draft lengths up to this one are costed always, so that a best one can be told."""

BELIEVED = 0.05
"""What was kept holds for a run whose own single passes took as long, up to this share."""

Report = Callable[[Progress], None]


def costs_of(
    pair: LoadedPair,
    draft_length: int,
    *,
    context: int,
    drafter: Drafter,
    early_exit: EarlyExit | None = None,
    shape: TreeShape | None = None,
    whole: WholeAsked | None = None,
    steps: StepTimes | None = None,
    seen: float | None = None,
    keep: bool = True,
    report: Report,
    pause: Pause,
) -> PassCosts:
    """What passes of the target cost up to this draft length, and a step of what guesses (of
    `early_exit`, if it is that), behind a context of this many tokens (a bucket). Where guesses
    branch, `shape` says how many rows a draft has, and a step of the head is one of a whole level.
    Where guesses are made as such a `whole`, a step is one of its guesses or levels. `steps` are
    those that were measured for the same study before.

    `seen` are the seconds that single passes of the target took just now: a machine that has become
    faster or slower since costs were kept is measured anew. Not to `keep` what is measured is for a
    machine that was seen not to be at its best.

    Raises Cancelled when `pause` does, Problem if a device's memory does not suffice.
    """
    longest = max(draft_length, SHORTEST)
    widths = list(range(1, longest + 2))
    if shape is not None:
        widths = sorted({1, *(1 + shape.nodes_at(length) for length in range(1, longest + 1))})
    target = pair.target.model
    timings = partial(_timings, context=context, keep=keep, report=report, pause=pause)
    timed = timings(target, widths, seen=seen)
    step, steps = None, steps or StepTimes()
    if pair.draft is not None and drafter == "model":
        draft = pair.draft.model
        if whole is not None:
            step = steps.of_model(draft, whole, context=context, pause=pause)
        step = step or timings(draft, [1]).seconds[1]
    beside = early_exit or pair.beside(drafter)
    if beside is not None:
        breadth = shape.breadth if shape is not None else 0
        step = steps.of(beside, context=context, pause=pause, breadth=breadth, whole=whole)
    asked = beside or pair.drafter(drafter)
    key = cost_key(target, context)
    return PassCosts(
        **{name: getattr(key, name) for name in CostKey.__struct_fields__},
        seconds={width: cost for width, cost in timed.seconds.items() if width in widths},
        repeats=timed.repeats,
        draft=asked.name if asked else None,
        draft_step=step,
    )


def cost_key(model: LanguageModel, context: int) -> CostKey:
    """What the costs of this model's passes hold for."""
    device = device_name(model.device)
    if model.device.type == "cpu":
        device = f"{processor_name()}, {torch.get_num_threads()} threads"
    passes = "" if model.passes.mode == "eager" else model.passes.said
    return CostKey(model.name, device, model.precision, model.attention, context, passes)


def _timings(
    model: LanguageModel,
    widths: Sequence[int],
    *,
    seen: float | None = None,
    context: int,
    keep: bool,
    report: Report,
    pause: Pause,
) -> Timings:
    """What was measured before, if it has all widths that the model can read, and still holds; else
    measured now: where only widths are missing, with those that were known, so that chains and
    trees do not take turns in being forgotten.
    """
    known = _read().get(_written(model, context))
    wanted = reached(widths, model)
    if known is not None and _holds(known, seen):
        if set(wanted) <= set(known.seconds):
            return known
        wanted = sorted({*wanted, *known.seconds})
    timed = time_passes(
        model,
        wanted,
        context=context,
        pause=pause,
        advance=partial(_told, report, passes_of(wanted)),
    )
    if keep:
        with contextlib.suppress(OSError):  # what cannot be kept is measured again
            _write({**_read(), _written(model, context): timed})
    return timed


def _holds(known: Timings, seen: float | None) -> bool:
    """Whether the machine is as fast as it was."""
    return seen is None or abs(known.seconds[1] - seen) <= BELIEVED * seen


def _told(report: Report, total: int, done: int) -> None:
    report(Progress("measuring what a pass costs", done, total, "passes"))


def _written(model: LanguageModel, context: int) -> str:
    """The key of a measurement in the file; other kernels, or another torch, take other times."""
    key = cost_key(model, context)
    named = [str(getattr(key, name)) for name in CostKey.__struct_fields__]
    parts = [part for part in named if part]
    parts += [f"{model.offloaded:.0%} offloaded"] if model.offloaded else []
    return ", ".join([*parts, model.kernel, str(model.folder), f"torch {torch.__version__}"])


def _file() -> Path:
    return cache_folder() / "passes.json"


def _read() -> dict[str, Timings]:
    """What was measured before; a file that cannot be read is measured again."""
    try:
        return msgspec.json.decode(_file().read_bytes(), type=dict[str, Timings])
    except (OSError, msgspec.MsgspecError):
        return {}


def _write(kept: dict[str, Timings]) -> None:
    cache_folder().mkdir(parents=True, exist_ok=True)
    new = _file().with_suffix(f".{os.getpid()}")
    new.write_bytes(msgspec.json.format(msgspec.json.encode(kept)))
    new.replace(_file())
