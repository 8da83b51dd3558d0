"""The verdict: whether speculation paid, in a few numbers, and what stands against them."""

from __future__ import annotations

import msgspec

from app.run.figures import FIGURES, LENIENCY, NOTHING, Figure
from app.run.flagged import cautions, cautions_on
from app.run.identities import violations
from app.run.metrics import Spread, same_text
from app.run.record import RunRecord
from app.run.rules import is_lossy


class Tile(msgspec.Struct, frozen=True):
    """A number above what it is."""

    number: str
    caption: str
    detail: str = ""
    tone: str = ""
    """The class that gives the number its colour."""


def tiles(record: RunRecord) -> list[Tile]:
    """The row of numbers, from left to right."""
    most = record.settings.draft_length + 1
    return [
        _tile(record, "decode_speedup", "decode speed-up", tone="accent"),
        _tile(record, "acceptance_rate", "acceptance rate", detail="of all guesses"),
        _tile(record, "tokens_per_loop", "tokens per loop", detail=f"of at most {most}"),
        *_leniency(record),
        _of_lane(record, "speculative"),
        _of_lane(record, "baseline"),
        _first_tokens(record),
        _text(record),
    ]


def flags(record: RunRecord) -> list[str]:
    """What a person should know before trusting a figure, the record's own notes first."""
    found = list(record.notes)
    if record.outcome != "finished":
        said = f"{record.message} {record.remedy}".strip()
        found.append(f"The run is not whole: {record.outcome}. {said}".rstrip())
    found += [f"Caution: {flag.message}" for flag in cautions(record)]
    every = [one for lane in record.lanes for one in lane.repetitions]
    known = sorted({one.at.provenance for one in every} - {"measured"})
    if known:
        found.append(f"Not measured here, but {' and '.join(known)}: figures of a server.")
    faults = [fault for one in every for fault in violations(one)]
    if faults:
        found.append(f"The counts do not add up, so no figure is to be trusted: {faults[0]}.")
    return found


def _tile(record: RunRecord, name: str, caption: str, *, detail: str = "", tone: str = "") -> Tile:
    """A figure of the shared table, with the range of its pairs where it has one."""
    figure = FIGURES[name]
    value = figure.value(record)
    if value is None:
        return Tile(NOTHING, caption)
    spread = figure.spread(record) if figure.spread else None
    number = figure.written(value)
    if figure.unit not in ("×", "%"):
        number = number.removesuffix(figure.unit).strip()
    kinds = [flag.kind for flag in cautions_on(record, name)]
    told = [_range(figure, spread) if spread else detail]
    told += [f"caution: {', '.join(kinds)}"] if kinds else []
    return Tile(number, caption, "; ".join(filter(None, told)), tone)


def _leniency(record: RunRecord) -> list[Tile]:
    """What only leniency keeps, of a run with a lossy rule."""
    if not is_lossy(record.settings):
        return []
    return [_tile(record, LENIENCY, "kept by leniency", detail="expected")]


def _range(figure: Figure, spread: Spread) -> str:
    if spread.single:
        return "one pair, no spread"
    low, high = figure.written(spread.low), figure.written(spread.high)
    return f"median of {len(spread.values)} pairs, {low} to {high}"


def _of_lane(record: RunRecord, lane: str) -> Tile:
    name = f"{lane}_decode_tokens_per_second"
    return _tile(record, name, f"tokens/s {lane}", detail="decode speed", tone=lane)


def _first_tokens(record: RunRecord) -> Tile:
    """The time to the first token of either lane."""
    figures = [FIGURES[f"{lane}_time_to_first_token_s"] for lane in ("speculative", "baseline")]
    known = [value for value in (figure.value(record) for figure in figures) if value is not None]
    detail = "speculative / baseline" if len(known) > 1 else ""
    return Tile(" / ".join(map(_short, known)) or NOTHING, "to first token", detail)


def _short(seconds: float) -> str:
    """Seconds as a person reads them."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def _text(record: RunRecord) -> Tile:
    """Whether both lanes wrote the same text."""
    caption, found = "text, both lanes", same_text(record)
    if found is None:
        paired = record.repetitions("baseline")
        if is_lossy(record.settings):
            return Tile(NOTHING, caption, "the rule is lossy" if paired else "")
        drawn = paired and not record.settings.sampling.greedy
        return Tile(NOTHING, caption, "drawn: same law, not same text" if drawn else "")
    if found.first_difference is None:
        return Tile("Same", caption, f"{found.compared} tokens compared", "good")
    where = f"from token {found.first_difference + 1}"
    if record.divergence is None:
        return Tile("Differs", caption, where, "trouble")
    if record.divergence.tie:
        return Tile("Tie", caption, f"numerical, {where}")
    return Tile("MISMATCH", caption, where, "trouble")
