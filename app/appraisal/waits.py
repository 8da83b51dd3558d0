"""How long one waits for text: percentiles of the gaps between chunks, and of time a token."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from app.run.events import LaneName
from app.run.metrics import chunk_gaps, seconds_per_token
from app.run.record import Repetition, RunRecord
from app.theory.percentiles import Percentiles, percentiles

DEFINITION = (
    "Half, nine in ten and nineteen in twenty do not exceed p50, p90 and p95. A gap is the time of "
    "a loop, which shows all of its tokens at once; time a token shares it among them. All "
    "repetitions together, without the first token."
)
"""What the rows mean."""


class WaitRow(msgspec.Struct, frozen=True):
    """One lane's waits of one kind, in seconds; None where nothing was waited for."""

    lane: LaneName
    label: str
    seconds: Percentiles | None

    @property
    def milliseconds(self) -> tuple[float | None, ...]:
        """p50, p90 and p95 in milliseconds."""
        found = self.seconds
        if found is None:
            return (None, None, None)
        return tuple(1000 * value for value in (found.p50, found.p90, found.p95))


def waits(record: RunRecord) -> list[WaitRow]:
    """The waits of each lane that ran, gaps first."""
    return [
        WaitRow(lane.name, label, percentiles([s for one in lane.repetitions for s in of(one)]))
        for label, of in _KINDS.items()
        for lane in record.lanes
    ]


_KINDS: dict[str, Callable[[Repetition], list[float]]] = {
    "chunk gap": chunk_gaps,
    "time a token": seconds_per_token,
}
