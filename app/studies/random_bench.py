"""A bench of random weights in a known shape: what the passes, the loop and a draft cost here.

All in one run on one machine: the limit that the memory sets, passes by their width, and whole
texts in every way of decoding, which take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import torch

from app.library.device_precision import default_precision
from app.library.random_shapes import NO_DRAFT, RandomShape, draft_shape, random_shape
from app.models.language_model import LanguageModel
from app.models.machine import choose_device, environment, make_current
from app.models.precision import why_not
from app.models.random_pair import RandomPair, random_pair
from app.models.stages import Stages
from app.models.warm import collect
from app.run.cost import SMALLEST_BUCKET
from app.run.events import Progress
from app.run.problems import Cancelled, Problem, release_frames
from app.run.random_bench import RandomBench, RandomMeasured
from app.run.settings import Precision
from app.studies.conditions import watch
from app.studies.device_limits import busy_seconds, copied_bytes, copy_bandwidth
from app.studies.passes import Timings, passes_of, time_passes
from app.studies.random_lanes import (
    Written,
    generated,
    our_text,
    plain_lane,
    record,
    simulated_lane,
)
from app.studies.random_room import free_bytes, needed_bytes, refuse_too_large
from app.studies.recording import kept_recordings

WIDTHS = range(1, 10)
PRECISIONS: tuple[Precision, ...] = ("nf4", "bf16", "fp16", "fp32")
"""What models of random weights are made in; a card's own choice comes first."""

Report = Callable[[Progress], None]
Pause = Callable[[], None]
Way = Callable[[int], Written]
"""Writes a text, the one of this number."""


def bench_random(wanted: RandomBench, *, report: Report, pause: Pause) -> RandomMeasured:
    """Makes the models and measures all. Nothing is fetched, and nothing kept.

    Raises Cancelled when `pause` does, and Problem for what does not fit.
    """
    wanted.check()
    target = random_shape(wanted.target)
    draft = draft_shape(target, wanted.draft)
    _refuse_long(wanted, [target, *([draft] if draft else [])])
    device = choose_device(wanted.device)
    precision = _precision(wanted.precision, target, device)
    make_current(device)
    free = free_bytes(device)
    needed = needed_bytes(target, draft, wanted, precision=precision, device=device)
    refuse_too_large(target.name, precision, needed, free=free, on=str(device))
    settled = msgspec.structs.replace(
        wanted, precision=precision, device=str(device), draft=draft.name if draft else NO_DRAFT
    )
    try:
        report(Progress("measuring the memory's speed"))
        copied = copied_bytes(device, free)
        bandwidth = copy_bandwidth(device, copied, pause=pause)
        collect()
        made = random_pair(
            target,
            draft,
            precision=precision,
            device=device,
            passes=wanted.passes,
            stages=Stages(report, pause),
        )
        collect()
        with kept_recordings(made.pair):
            return _measured(
                made, settled, copied=copied, bandwidth=bandwidth, report=report, pause=pause
            )
    except (Cancelled, Problem) as stop:
        release_frames(stop)
        collect()
        raise


def _refuse_long(wanted: RandomBench, shapes: Sequence[RandomShape]) -> None:
    """Raises Problem for a text that one of the models could not read."""
    least = min(shapes, key=lambda one: one.context_length)
    if wanted.prompt + wanted.tokens > least.context_length:
        raise Problem(
            f"A prompt of {wanted.prompt} and a text of {wanted.tokens} tokens are longer than the "
            f"{least.context_length} that {least.name} can read.",
            "Ask for fewer tokens of either.",
        )


def _precision(wanted: Precision | None, shape: RandomShape, device: torch.device) -> Precision:
    """The precision of both models. Raises Problem for one that cannot be taken."""
    if wanted is None:
        return default_precision(
            device.type,
            shape.parameters,
            is_taken=lambda precision: why_not(precision, device) is None,
            free_bytes=free_bytes(device) if device.type == "cpu" else None,
        )
    if wanted not in PRECISIONS:
        raise Problem(
            f"Random weights are not made in {wanted}.", f"Choose {' or '.join(PRECISIONS)}."
        )
    refusal = why_not(wanted, device)
    if refusal is not None:
        raise refusal
    return wanted


def _measured(
    made: RandomPair,
    wanted: RandomBench,
    *,
    copied: int,
    bandwidth: float,
    report: Report,
    pause: Pause,
) -> RandomMeasured:
    pair = made.pair
    target, draft = pair.target.model, pair.draft.model if pair.draft else None
    conditions = watch([target.device], pair.models)
    conditions.sample()
    context = min(max(wanted.prompt, SMALLEST_BUCKET), target.context_length - max(WIDTHS))
    timed = partial(_timings, context=context, report=report, pause=pause)
    passes = timed(target, WIDTHS)
    step = timed(draft, [1]).seconds[1] if draft else None
    ways = _ways(made, wanted, report=report, pause=pause)
    texts = _texts(ways, wanted.repeats, report=report, pause=pause)
    conditions.sample()
    # Last: once a profiler has been at work, every launch may take longer.
    report(Progress(f"watching what the device does in a pass of {target.name}"))
    busy, missing = busy_seconds(target, pause=pause)
    plain, theirs = texts["plain"], texts["generate"]
    return RandomMeasured(
        wanted=wanted,
        environment=environment(target.device),
        target=pair.target.facts,
        draft=pair.draft.facts if pair.draft else None,
        read_bytes=made.read_bytes,
        peak_bytes=made.peak_bytes,
        copied_bytes=copied,
        bandwidth=bandwidth,
        context=context,
        passes=passes.seconds,
        pass_repeats=passes.repeats,
        draft_step=step,
        busy=busy,
        busy_missing=missing,
        plain=tuple(one.timed for one in plain),
        generate=tuple(one.timed for one in theirs),
        simulated=tuple(one.timed for one in texts.get("guesses", [])),
        same_tokens=_shared(plain[0].ids, theirs[0].ids),
        cautions=tuple(flag.message for flag in conditions.flags()),
    )


def _timings(
    model: LanguageModel,
    widths: Sequence[int],
    *,
    context: int,
    report: Report,
    pause: Pause,
) -> Timings:
    """Medians of passes by their width, behind a context of so many tokens."""
    stage, total = f"measuring what a pass of {model.name} costs", passes_of(widths)
    return time_passes(
        model,
        widths,
        context=context,
        pause=pause,
        advance=lambda done: report(Progress(stage, done, total, "passes")),
    )


def _ways(made: RandomPair, wanted: RandomBench, *, report: Report, pause: Pause) -> dict[str, Way]:
    """Every way of decoding by its name; passes that can be recorded are."""
    plain = plain_lane(made.pair, wanted)
    record(plain, "baseline", report=report, pause=pause)
    prompt, tokens = plain.prompt_ids, wanted.tokens
    ways: dict[str, Way] = {
        "plain": lambda number: our_text(plain, "baseline", number=number, pause=pause),
        "generate": lambda number: generated(made.plain, prompt, tokens, pause=pause),
    }
    if made.pair.draft is not None:
        fast = simulated_lane(made.pair, wanted)
        record(fast, "speculative", report=report, pause=pause)
        ways["guesses"] = lambda number: our_text(fast, "speculative", number=number, pause=pause)
    return ways


def _texts(
    ways: dict[str, Way], repeats: int, *, report: Report, pause: Pause
) -> dict[str, list[Written]]:
    """Texts of each way, which take turns: forwards, then backwards, so that drift hits all alike.
    The first turn only warms up. A stop ends them early; the turns that were whole are kept.

    Raises Cancelled if none was.
    """
    found: dict[str, list[Written]] = {name: [] for name in ways}
    total, done = len(ways) * (repeats + 1), 0
    try:
        for turn in range(repeats + 1):
            written: dict[str, Written] = {}
            for name in ways if turn % 2 else reversed(ways):
                report(Progress("decoding in every way, in turns", done, total, "runs"))
                pause()
                written[name], done = ways[name](turn), done + 1
            for name, text in written.items() if turn else ():
                found[name].append(text)
    except Cancelled:
        if not all(found.values()):
            raise
    return found


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """With how many same tokens both begin."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
