"""The facts of a model, line by line, each with what it means."""

from __future__ import annotations

from app.gui.models_words import (
    bytes_on_disk,
    context_length,
    kind_words,
    parameters,
    size_words,
    source_words,
)
from app.gui.plain import visible
from app.gui.rows_panel import PanelRow
from app.library.entries import ModelEntry
from app.library.examining import Examined
from app.library.inventory import Listed


def facts_of(row: Listed) -> list[PanelRow]:
    """What is known of a model; what is not known has no line."""
    if row.fault is not None:
        return []
    entry = row.entry
    number, size, context = parameters(row), bytes_on_disk(row), context_length(row)
    lines = (
        ("Kind", kind_words(row), "Target or draft: what the pairs of the catalogue use it as."),
        ("Parameters", f"{number:,}" if number else "", "How many numbers its weights are."),
        (
            "Context",
            f"{context:,} tokens" if context else "",
            "The most tokens that prompt and text may be together.",
        ),
        *(_examined(row.examined) if row.examined else ()),
        ("On disk", size_words(size) if size else "", "What its files take on this machine."),
        (
            "Download",
            size_words(row.download_bytes) if row.download_bytes else "",
            "What fetching it transfers.",
        ),
        ("Licence", entry.licence if entry else "", "What its makers let you do with it."),
        ("Access", _access(entry) if entry else "", "Whether its hub gives it to everybody."),
        ("Source", source_words(entry.source) if entry else "", "Where it comes from."),
        (
            "Pairs",
            "; ".join(row.pairs),
            "The pairs of the catalogue that it is a part of: the Playground offers them.",
        ),
        (
            "Offered as",
            entry.name if entry and row.offered else "",
            "Its name in the catalogue, by which the command line calls it too.",
        ),
        (
            "Facts from",
            entry.facts_from if entry else "",
            "Where the catalogue's figures and licence were read.",
        ),
    )
    return [PanelRow((name, visible(value)), meaning) for name, value, meaning in lines if value]


def _access(entry: ModelEntry) -> str:
    """What its hub asks for, where the catalogue knows."""
    if entry.gated is None:
        return ""
    return "its licence has to be accepted on its page first" if entry.gated else "open"


def _examined(told: Examined) -> tuple[tuple[str, str, str], ...]:
    """What the headers of its files say."""
    return (
        (
            "Weights",
            told.quantisation,
            "How they are held on the disk: a type, a GGUF format, or a method of quantising.",
        ),
        ("Made as", told.architecture, "The architecture that its configuration names."),
    )
