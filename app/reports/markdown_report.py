"""A short report for people: what ran, the figures with their definitions, and both texts."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from app.appraisal.appraise import appraise
from app.appraisal.findings import findings
from app.appraisal.time_split import time_split
from app.appraisal.waits import DEFINITION, waits
from app.elsewhere.programs import recipes
from app.elsewhere.setup import Recipe
from app.reports.conditions import limits, not_held_equal
from app.reports.html.tables import on_screen
from app.reports.plain_text import fenced, inline
from app.run.events import ModelFacts
from app.run.figures import (
    FIGURES,
    NOTHING,
    agreement,
    badge,
    decimal,
    figures_of,
    median_of,
    percent,
    promise,
    size,
)
from app.run.flagged import cautions, marked
from app.run.metrics import counts, share_outside_models, total_counts
from app.run.record import RunRecord

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


def markdown_parts(record: RunRecord) -> dict[str, str]:
    """The Markdown report."""
    sections = (
        _verdict(record),
        _figures(record),
        _does_it_pay(record),
        _seconds(record),
        _waits(record),
        _tokens(record),
        _unequal(record),
        _what_ran(record),
        _settings(record),
        use_elsewhere(recipes(record)),
        _texts(record),
    )
    return {".md": "\n\n".join(sections) + "\n"}


def _verdict(record: RunRecord) -> str:
    mark = f" · {badge(record)}" if badge(record) else ""
    lines = [f"# {inline(record.settings.pair)}: a run of Foretoken{inline(mark)}"]
    lines.append(f"{inline(record.started)}, {record.outcome}. {inline(_said(record))}".rstrip())
    lines.append(
        f"**Decode speed-up: {FIGURES['decode_speedup'].text(record)}.** {promise(record)}"
    )
    lines.append(f"Verdict: {inline(appraise(record).verdict.text)}.")
    lines.append(agreement(record))
    lines += [f"> Caution: {inline(flag.message)}" for flag in cautions(record)]
    lines += [f"> {inline(note)}" for note in record.notes]
    return "\n\n".join(lines)


def _said(record: RunRecord) -> str:
    return f"{record.message} {record.remedy}".strip()


def _figures(record: RunRecord) -> str:
    rows = [
        (figure.label, marked(record, figure), figure.definition) for figure in figures_of(record)
    ]
    missing = f"{NOTHING}: there is nothing to divide by, or it was not run."
    mark = f": {inline(badge(record))}" if badge(record) else ""
    return f"## Figures{mark}\n\n{table(('Figure', 'Value', 'Definition'), rows)}\n\n{missing}"


def _does_it_pay(record: RunRecord) -> str:
    rows = [(one.label, one.value, one.definition) for one in findings(record)]
    return f"## Does it pay?\n\n{table(('Question', 'Answer', 'Definition'), rows)}"


def _what_ran(record: RunRecord) -> str:
    around = record.environment
    rows = [("Pair", record.settings.pair), ("Method", record.settings.method)]
    rows.append(("Rule", record.settings.rule))
    rows.append(("Target", _model(record.target)))
    rows.append(("Draft model", _model(record.draft) if record.draft else "none"))
    rows.append(("Device", f"{around.device}; {around.processor}; {around.threads} threads"))
    rows += limits(around)
    rows.append(("System", f"{around.platform}; Python {around.python}"))
    packages = ", ".join(f"{name} {version}" for name, version in around.packages.items())
    rows.append(("Versions", f"Foretoken {around.app}; {packages}"))
    rows.append(("Prompt", f"{len(record.prompt_ids)} tokens{reused(record)}"))
    rows.append(("Peak memory on the target's device", size(record.peak_bytes)))
    if record.draft_peak_bytes is not None:
        rows.append(("Peak memory on the draft model's device", size(record.draft_peak_bytes)))
    return f"## What ran\n\n{table(('', ''), rows)}"


def reused(record: RunRecord) -> str:
    """What each lane had read of the prompt in the turns before, as a clause; mostly nothing."""
    found = {lane.name: lane.repetitions[0].prompt_reused for lane in record.lanes}
    if not any(found.values()):
        return ""
    told = ", ".join(f"{tokens} by the {lane} lane" for lane, tokens in found.items())
    return f", of which were read in the turns before: {told}"


def _model(facts: ModelFacts) -> str:
    note = f" ({facts.precision_note})" if facts.precision_note else ""
    offloaded = f", {100 * facts.offloaded:.0f} % offloaded" if facts.offloaded else ""
    return (
        f"{facts.name}, {facts.precision}{note}, on {facts.device}{offloaded}; "
        f"{facts.parameters / 1e6:.0f} million parameters, weights {size(facts.weight_bytes)}; "
        f"attention {facts.attention}"
        + (f"; linear layers {facts.kernel}" if facts.kernel else "")
        + (f"; passes {facts.passes}" if facts.passes else "")
    )


def _tokens(record: RunRecord) -> str:
    """The counts of each lane, all its repetitions together."""
    rows = []
    for lane in record.lanes:
        tally = total_counts(lane.repetitions)
        rows.append((lane.name, *(str(getattr(tally, name)) for name in _COUNTED)))
    head = ("Lane", *map(on_screen, _COUNTED))
    return f"## Tokens, all repetitions together\n\n{table(head, rows)}"


def _seconds(record: RunRecord) -> str:
    """Where the time of a loop went in each lane."""
    rows = [(row.label, *map(decimal, row.milliseconds)) for row in time_split(record)]
    shares = (median_of(record, lane.name, share_outside_models) for lane in record.lanes)
    rows.append(("outside of model calls", *map(percent, shares)))
    head = ("Milliseconds a loop", *(lane.name for lane in record.lanes))
    return f"## Time, medians of repetitions\n\n{table(head, rows)}"


def _waits(record: RunRecord) -> str:
    rows = [(row.lane, row.label, *map(decimal, row.milliseconds)) for row in waits(record)]
    shown = table(("Lane", "Milliseconds", "p50", "p90", "p95"), rows)
    return f"## Waiting for text\n\n{shown}\n\n{DEFINITION}"


def _unequal(record: RunRecord) -> str:
    lines = [f"- {inline(line)}" for line in not_held_equal(record)]
    return "\n".join(["## What was not held equal", "", *lines])


def _settings(record: RunRecord) -> str:
    plain = msgspec.to_builtins(record.settings)
    text = msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()
    return f"## Settings, to repeat it\n\n{fenced(text)}"


def use_elsewhere(found: Iterable[Recipe], *said: str) -> str:
    """The same set-up for other programs, and what is not the same there; first what is `said`."""
    parts = ["## Use elsewhere", *said]
    for one in found:
        parts.append(f"### {inline(one.program)} ({inline(one.release)})")
        parts += [fenced(one.text)] if one.text else []
        parts.append("\n".join(f"- {inline(line)}" for line in one.not_carried))
    return "\n\n".join(filter(None, parts))


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


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown, in which text is only text."""
    names = [inline(name) for name in head]
    lines = [names, ["---"] * len(names), *([inline(value) for value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
