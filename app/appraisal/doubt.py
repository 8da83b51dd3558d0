"""What is said against a verdict in the same breath: that its runs were disturbed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.run.flagged import cautions_on
from app.run.flags import FlagKind
from app.run.record import RunRecord

_DISTURBED: dict[FlagKind, str] = {
    "noisy": "on a quiet machine",
    "other load": "on a quiet machine",
    "throttled": "once the device has cooled",
    "battery": "on mains power",
    "slept": "while it stays awake",
}
"""What disturbs a run, and how to measure again without it."""

DEFINITION = (
    "A run is disturbed whose repetitions lie too far apart, or during which other programs used "
    "the device, its clock fell, it ran on battery or slept. Where half of the runs or more are, "
    "the verdict says so."
)
"""When a verdict is doubted."""


def doubt(records: Sequence[RunRecord]) -> str:
    """Why the verdict on these runs is not to be trusted, as a clause; "" if fewer than half were
    disturbed. Other cautions on the speed-up are named where half of the runs have them.
    """
    kinds = [[flag.kind for flag in cautions_on(one, "decode_speedup")] for one in records]
    disturbed = [found for found in kinds if any(kind in _DISTURBED for kind in found)]
    said = [_disturbed(disturbed, len(records))] if _half(len(disturbed), len(records)) else []
    others = [
        kind
        for kind in _each(kinds)
        if kind not in _DISTURBED and _half(sum(kind in one for one in kinds), len(records))
    ]
    return "; ".join([*said, *([f"mind the caution: {', '.join(others)}"] if others else [])])


def _half(some: int, runs: int) -> bool:
    return some > 0 and 2 * some >= runs


def _disturbed(found: Sequence[Sequence[FlagKind]], runs: int) -> str:
    who = "the run was" if runs == 1 else f"{len(found)} of its {runs} runs were"
    kinds = [kind for kind in _each(found) if kind in _DISTURBED]
    again = " and ".join(dict.fromkeys(_DISTURBED[kind] for kind in kinds))
    return f"{who} disturbed ({', '.join(kinds)}): measure again {again}"


def _each(found: Sequence[Sequence[FlagKind]]) -> Iterator[FlagKind]:
    """Every kind once, in the order in which they first come."""
    yield from dict.fromkeys(kind for kinds in found for kind in kinds)
