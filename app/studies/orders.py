"""In which order the lanes of a run go: in turn for looking, whole and alternated for measuring."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from app.decoding.drivers import Pause, interleave
from app.decoding.loop import LaneEvent
from app.run.events import At, LaneEnded, LaneName
from app.run.record import RunRecord
from app.run.settings import Order
from app.studies.lanes import LaneMaker

Open = Callable[[At], Iterator[LaneEvent]]
Events = Iterator[LaneEvent]


def interleaved(run: str, lanes: list[LaneName], repetitions: int, *, open_lane: Open) -> Events:
    """Both lanes at once, each going on while it has written less than the other."""
    for repetition in range(repetitions):
        yield from interleave([open_lane(At(run, lane, repetition)) for lane in lanes])


def alternated(run: str, lanes: list[LaneName], repetitions: int, *, open_lane: Open) -> Events:
    """Whole lanes, A B B A ...: drift hits both alike."""
    for repetition in range(repetitions):
        for lane in lanes if repetition % 2 == 0 else lanes[::-1]:
            yield from open_lane(At(run, lane, repetition))


ORDERS: dict[Order, Callable[..., Events]] = {
    "interleaved": interleaved,
    "alternated": alternated,
}


def lane_events(maker: LaneMaker, run: str, pause: Pause) -> Events:
    """The events of all lanes of a run; a lane that is cancelled is the last to open."""
    settings = maker.settings
    lanes: list[LaneName] = ["speculative", "baseline"] if settings.baseline else ["speculative"]
    order = ORDERS[settings.order]
    stopped = False

    def open_lane(at: At) -> Events:
        nonlocal stopped
        if stopped:
            return
        for event in maker.open(msgspec.structs.replace(at, turn=settings.turn), pause):
            stopped = stopped or (isinstance(event, LaneEnded) and event.finish == "cancelled")
            yield event

    return order(run, lanes, settings.repetitions, open_lane=open_lane)


def unfinished(record: RunRecord) -> Events:
    """The ends of lanes that another lane's end has cut off."""
    for lane in record.lanes:
        for repetition in lane.repetitions:
            if repetition.finish is None:
                yield LaneEnded(repetition.at, "cancelled")
