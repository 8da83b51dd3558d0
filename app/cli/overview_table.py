"""What `models` prints: the pairs and models on offer, and how each stands on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from rich import box
from rich.console import Console
from rich.style import Style
from rich.table import Table

from app.cli.screen import put, say
from app.cli.tables import table
from app.library.entries import HubSource, ModelEntry
from app.library.examining import folder_bytes
from app.library.overview import STANDINGS, ModelStanding, Overview, PairStanding, size_words

_UNKNOWN = "?"
_GATED = {True: "yes", False: "no", None: _UNKNOWN}


def show_overview(console: Console, found: Overview, own_catalogue: Path) -> None:
    """What the catalogue offers: what is on this machine first, the rest from small to large."""
    pairs = _grouped("Pairs", ("Pair", "Method", "Tested", "On this machine", "To fetch"))
    for _, pairs_alike in groupby(found.pairs, key=lambda pair: pair.standing):
        _add(pairs, map(_pair_row, pairs_alike))
    put(console, pairs)
    head = ("Model", "Parameters", "Licence", "Gated", "On this machine", "Size")
    models = _grouped("Models", head)
    ordered = sorted(found.models, key=lambda model: STANDINGS.index(model.standing))
    for _, models_alike in groupby(ordered, key=lambda model: model.standing):
        _add(models, map(_model_row, models_alike))
    put(console, models)
    say(console, "Gated: its hub asks you to accept a licence first. ?: not known.")
    for model in ordered:
        if model.fault:
            say(console, f"{model.entry.name}: {model.fault}", style=Style(color="red"))
    say(console, f"Your own entries go into {own_catalogue}")


def _grouped(title: str, head: tuple[str, ...]) -> Table:
    """An empty table whose groups stand apart; its names are never cut."""
    made = table(head, (), title=title)
    made.box, made.padding, made.pad_edge = box.SIMPLE, (0, 1, 0, 0), False
    made.columns[0].no_wrap = True
    return made


def _add(made: Table, rows: Iterable[tuple[str, ...]]) -> None:
    """Adds a group of rows."""
    for row in rows:
        made.add_row(*row)
    made.add_section()


def _pair_row(pair: PairStanding) -> tuple[str, ...]:
    mark = " (default)" if pair.default else ""
    tested = "yes" if pair.entry.tested else "no"
    fetched = _size(pair.download_bytes) if pair.standing == "to be fetched" else ""
    return pair.entry.name + mark, pair.entry.method, tested, pair.standing, fetched


def _model_row(model: ModelStanding) -> tuple[str, ...]:
    entry = model.entry
    size = folder_bytes(model.folder) if model.folder is not None else model.download_bytes
    return (
        entry.name,
        _parameters(entry),
        entry.licence or _UNKNOWN,
        _GATED[entry.gated if isinstance(entry.source, HubSource) else False],
        model.standing,
        _size(size),
    )


def _size(size: int | None) -> str:
    return _UNKNOWN if size is None else size_words(size)


def _parameters(entry: ModelEntry) -> str:
    """How many, in millions or billions."""
    if entry.shape is None:
        return _UNKNOWN
    number = entry.shape.parameters
    return f"{number / 1e9:.2f} B" if number >= 999.5e6 else f"{number / 1e6:.0f} M"
