"""A page to look at and to pass on: one file, no scripts, nothing loaded from anywhere."""

from __future__ import annotations

import msgspec

from app.appraisal.appraise import appraise
from app.elsewhere.programs import recipes
from app.reports.conditions import not_held_equal
from app.reports.html.charts import charts
from app.reports.html.coloured import Guesses, Run, coloured, with_guesses
from app.reports.html.facts import to_repeat, what_ran
from app.reports.html.page import filled
from app.reports.html.tables import number_tables
from app.reports.html.verdict import flags, tiles
from app.run.events import LaneName
from app.run.figures import agreement, badge, promise
from app.run.metrics import counts
from app.run.record import RunRecord

LEGEND = (
    ("a", "accepted", "guessed ahead, tested by the target, kept"),
    ("c", "corrected", "the target's own, in place of the first guess it rejected"),
    ("b", "bonus", "the target's own, behind a draft that was kept whole"),
    ("", "plain", "written by the target alone"),
)
"""The looks of the text: class, status, meaning."""

LEGEND_OF_THROWN = (
    ("r", "rejected", "tested and thrown away"),
    ("i", "ignored", "guessed behind a rejection or a stop, never decided"),
)
"""The looks of the guesses that were thrown away."""


class LanePart(msgspec.Struct, frozen=True):
    """The text of a lane's first repetition, as the page shows it."""

    name: LaneName
    title: str
    ended: str
    runs: list[Run]
    guesses: Guesses | None
    """For the speculative lane: the text with the guesses that were thrown away."""


def html_parts(record: RunRecord) -> dict[str, str]:
    """The HTML report."""
    values = {
        "pair": record.settings.pair,
        "facts": what_ran(record),
        "badge": badge(record),
        "verdict": appraise(record).verdict.text,
        "promise": promise(record),
        "agreement": agreement(record),
        "tiles": tiles(record),
        "flags": flags(record),
        "prompt": record.settings.prompt,
        "system": record.settings.system,
        "lanes": [_lane(record, name) for name in ("speculative", "baseline")],
        "legend": LEGEND,
        "legend_of_thrown": LEGEND_OF_THROWN,
        "charts": charts(record),
        "tables": number_tables(record),
        "repeat": to_repeat(record),
        "unequal": not_held_equal(record),
        "elsewhere": recipes(record),
    }
    return {".html": filled(values)}


def _lane(record: RunRecord, name: LaneName) -> LanePart:
    """A lane's part of the page; one that was not run has no text."""
    found = record.repetitions(name)
    title = name.capitalize()
    if not found:
        return LanePart(name, title, "not run", [], None)
    first = found[0]
    ended = f"{counts(first).committed} tokens, ended by: {first.finish or 'it was cut off'}"
    if len(found) > 1:
        ended = f"the first of {len(found)} repetitions: {ended}"
    guesses = with_guesses(first) if name == "speculative" else None
    return LanePart(name, title, ended, coloured(first), guesses)
