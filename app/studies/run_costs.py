"""The costs of a run, found once its lanes have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median

from app.decoding.contracts import Branched
from app.models.exhausted import memory_guard
from app.run.cost import PassCosts, bucket_of
from app.run.events import PassesCosted, Progress
from app.run.problems import Cancelled, Problem, release_frames
from app.run.record import RunRecord
from app.run.tree_shape import tree_shape
from app.studies.costing import costs_of
from app.studies.head_steps import StepTimes
from app.studies.lanes import LaneMaker
from app.studies.recording import whole_lengths
from app.studies.whole_times import ChainAsked, TreeAsked, WholeAsked

Report = Callable[[Progress], None]
Pause = Callable[[], None]


def run_costs(
    record: RunRecord, maker: LaneMaker, *, report: Report, pause: Pause
) -> Iterator[PassesCosted]:
    """What passes cost where this run has come to. Nothing for a run that was cut short or has no
    round, where the target cannot take back what was measured, where memory does not suffice, and
    if a person stops the measurement: the run is finished all the same.
    """
    if maker.refusal or not _is_whole(record):
        return
    written = max(len(one.tokens) for lane in record.lanes for one in lane.repetitions)
    try:
        with memory_guard("while passes were measured"):
            costs = lane_costs(
                maker,
                context=bucket_of(len(maker.prompt_ids) + written),
                seen=_single_pass(record),
                keep=not any(flag.reach == "times" for flag in record.flags),
                report=report,
                pause=pause,
            )
    except (Cancelled, Problem) as stop:
        release_frames(stop)
        return
    yield PassesCosted(record.run, costs)


def with_costs(
    maker: LaneMaker, *, steps: StepTimes | None = None, report: Report, pause: Pause
) -> LaneMaker:
    """The same maker, knowing what passes cost if its draft lengths are chosen by that: as they
    were kept (a step: in `steps`), else measured now. Raises Cancelled when `pause` does, and
    Problem.
    """
    if maker.refusal or maker.settings.draft_length_policy != "best":
        return maker
    context = bucket_of(maker.capacity)
    costs = lane_costs(maker, context=context, steps=steps, report=report, pause=pause)
    return replace(maker, costs=costs)


def lane_costs(
    maker: LaneMaker,
    *,
    context: int,
    steps: StepTimes | None = None,
    seen: float | None = None,
    keep: bool = True,
    report: Report,
    pause: Pause,
) -> PassCosts:
    """The costs of this maker's own method, as `costs_of` has them, by what guesses in its lanes
    and how wide its passes are.
    """
    return costs_of(
        maker.pair,
        maker.settings.draft_length,
        context=context,
        drafter=maker.drafter,
        early_exit=maker.early_exit,
        shape=tree_shape(maker.settings),
        whole=_whole_asked(maker),
        steps=steps,
        seen=seen,
        keep=keep,
        report=report,
        pause=pause,
    )


def _whole_asked(maker: LaneMaker) -> WholeAsked | None:
    """The longest of the whole drafts that the run asks for; None where it asks for none."""
    whole = maker.whole
    lengths = whole_lengths(maker.settings, whole) if whole else ()
    if not whole or not lengths:
        return None
    if isinstance(whole, Branched):
        return TreeAsked(whole.how, lengths[-1])
    return ChainAsked(whole.how, lengths[-1])


def _single_pass(record: RunRecord) -> float | None:
    """The median seconds of a pass of the baseline; None without one."""
    rounds = record.rounds("baseline")
    return median(round_.phases.verify for round_ in rounds) if rounds else None


def _is_whole(record: RunRecord) -> bool:
    """Whether every lane came to its own end, and there was at least one round."""
    every = [repetition for lane in record.lanes for repetition in lane.repetitions]
    return all(one.whole for one in every) and any(one.rounds for one in every)
