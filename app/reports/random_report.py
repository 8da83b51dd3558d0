"""A bench of random weights as tables, as one JSON object, and as files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from app.reports.conditions import limits
from app.reports.html.tables import Table
from app.reports.markdown_report import table
from app.reports.plain_text import inline
from app.reports.writing import check_report_path, write_files
from app.run.events import ModelFacts
from app.run.figures import size
from app.run.problems import Problem
from app.run.random_bench import RandomMeasured
from app.run.random_figures import SIMULATED, random_figures
from app.run.sizes import bytes_in_words

TITLE = "A bench of random weights"


def random_json(found: RandomMeasured) -> str:
    """One line of strict JSON: the figures, and all that they were made of."""
    figures = {one.name: msgspec.to_builtins(one) for one in random_figures(found)}
    whole = {
        "random_weights": True,
        "acceptance": "simulated",
        "figures": figures,
        "measured": msgspec.to_builtins(found, str_keys=True),
    }
    return json.dumps(whole, allow_nan=False)


RANDOM_FORMATS: dict[str, Callable[[RandomMeasured], str]] = {
    ".json": lambda found: random_json(found) + "\n",
    ".md": lambda found: _markdown(found),
}
"""The formats on offer, by the suffix that chooses them."""


def check_random_report(path: Path) -> None:
    """Raises Problem for a report that could not be written."""
    if path.suffix.lower() not in RANDOM_FORMATS:
        raise Problem(
            f"A bench of random weights is not written as {path.name}.",
            f"End it in one of: {', '.join(RANDOM_FORMATS)}.",
        )
    check_report_path(path, overwrite=True)


def write_random_report(found: RandomMeasured, path: Path) -> None:
    """Writes a report in the format of its suffix, in the place of one that is there.

    Raises Problem.
    """
    check_random_report(path)
    write_files({path: RANDOM_FORMATS[path.suffix.lower()](found)})


def random_tables(found: RandomMeasured) -> list[Table]:
    """The figures beside their goals, passes by width, what the figures mean, and what ran."""
    figures = random_figures(found)
    rows = tuple((one.label, one.text, one.goal, one.verdict) for one in figures)
    widths = tuple(
        (f"{width} row{'s' if width > 1 else ''}", f"{1000 * taken:.2f}", _share(found, taken))
        for width, taken in sorted(found.passes.items())
    )
    head = ("Pass of the target", "ms", "in passes of one row")
    means = tuple((one.label, one.definition) for one in figures)
    return [
        Table("Figures", ("Figure", "Value", "Goal", "Verdict"), rows, words=True),
        Table("Cost of a pass", head, widths),
        Table("Definitions", ("Figure", "Meaning"), means, words=True),
        Table("What ran", ("Name", "Value"), tuple(_ran(found)), words=True),
    ]


def random_notes(found: RandomMeasured) -> list[str]:
    """What to know before trusting a figure."""
    tokens = found.plain[0].tokens
    notes = [
        "The weights are random: texts mean nothing, and no guess would be kept for what it says. "
        f"Figures with guesses are of {SIMULATED}.",
        "Values are medians, with the range of the repetitions. Ids are written as numbers: no "
        "tokenizer's time is in them.",
        f"Our loop and generate wrote the same first {found.same_tokens} of {tokens} tokens.",
    ]
    if not found.whole:
        notes.append(f"It was stopped: {len(found.plain)} of {found.wanted.repeats} repetitions.")
    if not found.simulated:
        notes.append("There is no draft: nothing that guesses need was measured.")
    if found.busy_missing:
        notes.append(f"How long the device is idle was not measured: {found.busy_missing}.")
    return notes + [f"Caution: {caution}" for caution in found.cautions]


def _share(found: RandomMeasured, taken: float) -> str:
    return f"{taken / found.passes[1]:.2f}"


def _ran(found: RandomMeasured) -> Iterator[tuple[str, str]]:
    """What is needed to repeat it."""
    around, wanted = found.environment, found.wanted
    yield "Target", _model(found.target)
    yield "Draft", _model(found.draft) if found.draft else "none"
    yield "Most memory while they were made", size(found.peak_bytes)
    yield "Copied", f"{bytes_in_words(found.copied_bytes)} at a time"
    texts = f"{wanted.tokens} tokens behind {wanted.prompt}, {wanted.repeats} of each way"
    yield "Texts", f"{texts}, seed {wanted.seed}"
    yield "Device", f"{around.device}; {around.processor}; {around.threads} threads"
    yield from limits(around)
    yield "System", f"{around.platform}; Python {around.python}"
    packages = ", ".join(f"{name} {version}" for name, version in around.packages.items())
    yield "Versions", f"Foretoken {around.app}; {packages}"


def _model(facts: ModelFacts) -> str:
    kernel = f"; {facts.kernel}" if facts.kernel else ""
    passes = f"; passes {facts.passes}" if facts.passes else ""
    return (
        f"{facts.name}, random weights in {facts.precision} on {facts.device}; "
        f"{facts.parameters / 1e6:,.1f} million, {bytes_in_words(facts.weight_bytes)}; attention "
        f"{facts.attention}{kernel}{passes}"
    )


def _markdown(found: RandomMeasured) -> str:
    parts = [f"# {TITLE}: {inline(found.wanted.target)}"]
    parts += [f"> {inline(note)}" for note in random_notes(found)]
    for one in random_tables(found):
        parts += [f"## {inline(one.caption)}", table(one.head, one.rows)]
    return "\n\n".join(parts) + "\n"
