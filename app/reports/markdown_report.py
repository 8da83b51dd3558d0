"""A short report for people: what ran, the figures with their definitions, and both texts."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from app.reports.plain_text import fenced, inline
from app.run.events import ModelFacts, Phases
from app.run.figures import FIGURES, NOTHING, agreement, median_of, promise
from app.run.metrics import counts, phase_seconds, share_outside_models, total_counts
from app.run.record import Lane, RunRecord

_COUNTED = (
    "first",
    "accepted",
    "corrected",
    "bonus",
    "plain",
    "committed",
    "drafted",
    "rejected",
    "ignored",
    "discarded",
    "rounds",
)
_PHASES = {
    "draft_prompt": "the draft model's pass over the prompt",
    "draft": "guessing",
    "verify": "the target's passes",
    "decide": "the rule, and the copy to the host",
    "rest": "everything else",
}


def markdown_parts(record: RunRecord) -> dict[str, str]:
    """The Markdown report."""
    sections = (
        _verdict(record),
        _figures(record),
        _what_ran(record),
        _tokens(record),
        _seconds(record),
        _settings(record),
        _texts(record),
    )
    return {".md": "\n\n".join(sections) + "\n"}


def _verdict(record: RunRecord) -> str:
    lines = [f"# {inline(record.settings.pair)}: a run of Foretoken"]
    lines.append(f"{inline(record.started)}, {record.outcome}. {inline(_said(record))}".rstrip())
    lines.append(
        f"**Decode speed-up: {FIGURES['decode_speedup'].text(record)}.** {promise(record)}"
    )
    lines.append(agreement(record))
    lines += [f"> {inline(note)}" for note in record.notes]
    return "\n\n".join(lines)


def _said(record: RunRecord) -> str:
    return f"{record.message} {record.remedy}".strip()


def _figures(record: RunRecord) -> str:
    rows = [(figure.label, figure.text(record), figure.definition) for figure in FIGURES.values()]
    missing = f"{NOTHING}: there is nothing to divide by, or it was not run."
    return f"## Figures\n\n{_table(('Figure', 'Value', 'Definition'), rows)}\n\n{missing}"


def _what_ran(record: RunRecord) -> str:
    around = record.environment
    rows = [("Pair", record.settings.pair), ("Method", record.settings.method)]
    rows.append(("Target", _model(record.target)))
    rows.append(("Draft model", _model(record.draft) if record.draft else "none"))
    rows.append(("Device", f"{around.device}; {around.processor}; {around.threads} threads"))
    rows.append(("System", f"{around.platform}; Python {around.python}"))
    packages = ", ".join(f"{name} {version}" for name, version in around.packages.items())
    rows.append(("Versions", f"Foretoken {around.app}; {packages}"))
    rows.append(("Prompt", f"{len(record.prompt_ids)} tokens"))
    rows.append(("Peak memory", _bytes(record.peak_bytes)))
    return f"## What ran\n\n{_table(('', ''), rows)}"


def _model(facts: ModelFacts) -> str:
    note = f" ({facts.precision_note})" if facts.precision_note else ""
    return (
        f"{facts.name}, {facts.precision}{note}, on {facts.device}; "
        f"{facts.parameters / 1e6:.0f} million parameters, weights {_bytes(facts.weight_bytes)}; "
        f"attention {facts.attention}" + (f"; linear layers {facts.kernel}" if facts.kernel else "")
    )


def _bytes(count: int | None) -> str:
    return NOTHING if count is None else f"{count / 1e6:.0f} MB"


def _tokens(record: RunRecord) -> str:
    """The counts of each lane, all its repetitions together."""
    rows = []
    for lane in record.lanes:
        tally = total_counts(lane.repetitions)
        rows.append((lane.name, *(str(getattr(tally, name)) for name in _COUNTED)))
    return f"## Tokens, all repetitions together\n\n{_table(('Lane', *_COUNTED), rows)}"


def _seconds(record: RunRecord) -> str:
    """Where the decode time of each lane went, as medians of repetitions."""
    rows = []
    for name in Phases.__struct_fields__:
        if name in _PHASES:
            seconds = (_phase(record, lane, name) for lane in record.lanes)
            rows.append((_PHASES[name], *seconds))
    shares = (median_of(record, lane.name, share_outside_models) for lane in record.lanes)
    told = (NOTHING if share is None else f"{100 * share:.1f} %" for share in shares)
    rows.append(("outside of model calls", *told))
    head = ("Seconds of decoding", *(lane.name for lane in record.lanes))
    return f"## Time, medians of repetitions\n\n{_table(head, rows)}"


def _phase(record: RunRecord, lane: Lane, name: str) -> str:
    spent = median_of(record, lane.name, lambda one: getattr(phase_seconds(one), name))
    return NOTHING if spent is None else f"{spent:.4f}"


def _settings(record: RunRecord) -> str:
    plain = msgspec.to_builtins(record.settings)
    text = msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()
    return f"## Settings, to repeat it\n\n{fenced(text)}"


def _texts(record: RunRecord) -> str:
    """The first repetition of each lane; control characters are shown as signs."""
    parts = ["## Text"]
    for lane in record.lanes:
        for repetition in lane.repetitions[:1]:
            ended = repetition.finish or "it was cut off"
            written = counts(repetition).committed
            parts.append(f"### {lane.name.capitalize()}: {written} tokens, ended by: {ended}")
            parts.append(fenced(repetition.text))
    return "\n\n".join(parts)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = [inline(name) for name in head]
    lines = [names, ["---"] * len(names), *([inline(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
