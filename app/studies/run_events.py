"""One run, told as events: from its start to its end, whatever stops it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from app.models.machine import PeakWatch, environment
from app.models.warm import collect
from app.run.events import (
    ConditionsSeen,
    LaneEnded,
    Outcome,
    Progress,
    RunEnded,
    RunEvent,
    RunStarted,
)
from app.run.identities import violations
from app.run.problems import Cancelled, Problem, release_frames
from app.run.record import RunRecord
from app.studies.conditions import watch
from app.studies.divergence import find_divergence
from app.studies.earlier_texts import EarlierTexts
from app.studies.freeing import freeing
from app.studies.lanes import LaneMaker
from app.studies.orders import lane_events, unfinished
from app.studies.run_costs import run_costs
from app.studies.warming import warm_up_lanes

Report = Callable[[Progress], None]
Pause = Callable[[], None]


def run_events(
    run: str,
    maker: LaneMaker,
    texts: EarlierTexts | None,
    *,
    costing: bool,
    report: Report,
    pause: Pause,
) -> Iterator[RunEvent]:
    """A run from RunStarted to RunEnded, whatever stops it; `texts` takes in what it wrote."""
    started = _run_started(run, maker)
    record = RunRecord.begin(started)
    yield started
    models = maker.pair.models
    devices = tuple(dict.fromkeys(model.device for model in models))
    peaks, conditions = tuple(map(PeakWatch, devices)), watch(devices, models)
    stop: Exception | None = None
    divergence = None
    try:
        with freeing("while the models were warmed up"):
            warm_up_lanes(maker, report=report, pause=pause)
        conditions.sample()
        for event in lane_events(maker, run, pause):
            record.apply(event)
            if isinstance(event, LaneEnded):
                for peak in peaks:
                    peak.sample()
                conditions.sample()
            yield event
        with freeing("while the lanes' first difference was read again"):
            divergence = find_divergence(maker.pair.target.model, record)
    except (Cancelled, Problem) as reason:
        stop = reason
        release_frames(stop)
        collect()
    held = [peak.bytes for peak in peaks]
    repeated = maker.earlier.repeats(record) if maker.earlier else None
    flags = (*conditions.flags(), *filter(None, (repeated,)))
    seen = [ConditionsSeen(run, flags)] if flags else []
    for last in (*unfinished(record), *seen, *([divergence] if divergence else [])):
        record.apply(last)
        yield last
    if texts and not stop:
        texts.add(maker.pair.target.model, record)
    if costing and not stop:
        yield from run_costs(record, maker, report=report, pause=pause)
    yield _ended(record, stop, held)


def _run_started(run: str, maker: LaneMaker) -> RunStarted:
    pair, settings = maker.pair, maker.settings
    return RunStarted(
        run=run,
        started=datetime.now().astimezone().isoformat(timespec="seconds"),
        settings=settings,
        environment=environment(pair.target.model.device),
        target=pair.target.facts,
        draft=pair.drafter(maker.drafter),
        prompt_ids=maker.prompt_ids,
        end_ids=pair.end_ids,
        lossless=maker.lossless,
        notes=maker.notes,
        draft_resident=pair.drafts_with != "nothing",
    )


def _ended(record: RunRecord, stop: Exception | None, held: Sequence[int | None]) -> RunEnded:
    """How the run ended, and the most that was held on each device, the target's first; counts
    that do not add up are a fault of ours and are raised as one.
    """
    repetitions = [repetition for lane in record.lanes for repetition in lane.repetitions]
    cap = record.settings.max_new_tokens
    found = [fault for repetition in repetitions for fault in violations(repetition, cap)]
    if found:
        raise RuntimeError(f"the counts of run {record.run} do not add up: {'; '.join(found[:3])}")
    if isinstance(stop, Problem):
        return RunEnded(record.run, "failed", stop.message, stop.remedy, *held)
    return RunEnded(record.run, "cancelled" if stop else _outcome(record), "", "", *held)


def _outcome(record: RunRecord) -> Outcome:
    """A stop ends the lanes quietly; the run was cancelled if one of them was."""
    finishes = [repetition.finish for lane in record.lanes for repetition in lane.repetitions]
    return "cancelled" if "cancelled" in finishes else "finished"
