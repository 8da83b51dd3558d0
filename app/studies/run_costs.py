"""The costs of a run, found once its lanes have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median

from app.models.exhausted import memory_guard
from app.run.cost import bucket_of
from app.run.events import PassesCosted, Progress
from app.run.problems import Cancelled, Problem, release_frames
from app.run.record import RunRecord
from app.run.tree_shape import tree_shape
from app.studies.costing import costs_of
from app.studies.lanes import LaneMaker

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
            costs = costs_of(
                maker.pair,
                maker.settings.draft_length,
                context=bucket_of(len(maker.prompt_ids) + written),
                drafter=maker.drafter,
                early_exit=maker.early_exit,
                shape=tree_shape(maker.settings),
                seen=_single_pass(record),
                keep=not any(flag.reach == "times" for flag in record.flags),
                report=report,
                pause=pause,
            )
    except (Cancelled, Problem) as stop:
        release_frames(stop)
        return
    yield PassesCosted(record.run, costs)


def with_costs(maker: LaneMaker, *, report: Report, pause: Pause) -> LaneMaker:
    """The same maker, knowing what passes cost if its draft lengths are chosen by that: as they
    were kept, else measured now. Raises Cancelled when `pause` does, and Problem.
    """
    if maker.refusal or maker.settings.draft_length_policy != "best":
        return maker
    costs = costs_of(
        maker.pair,
        maker.settings.draft_length,
        context=bucket_of(maker.capacity),
        drafter=maker.drafter,
        early_exit=maker.early_exit,
        report=report,
        pause=pause,
    )
    return replace(maker, costs=costs)


def _single_pass(record: RunRecord) -> float | None:
    """The median seconds of a pass of the baseline; None without one."""
    rounds = [round_ for one in record.repetitions("baseline") for round_ in one.rounds]
    return median(round_.phases.verify for round_ in rounds) if rounds else None


def _is_whole(record: RunRecord) -> bool:
    """Whether every lane came to its own end, and there was at least one round."""
    every = [repetition for lane in record.lanes for repetition in lane.repetitions]
    return all(one.whole for one in every) and any(one.rounds for one in every)
