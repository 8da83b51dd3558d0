"""What the commands below `models` print."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.style import Style

from app import files
from app.cli.screen import say, warn
from app.library.catalogue import Catalogue
from app.library.checking import Check, Checked
from app.library.examining import Examined
from app.library.hash_check import HashCheck
from app.library.kept import converted_root, hub_bytes, tree_bytes, without_entry
from app.library.scan import Found, Scan
from app.library.scan_places import hub_cache
from app.library.wheel import wheel_folder

_BAD = Style(color="red")
_GOOD = Style(color="green")


def megabytes(size: int) -> str:
    """A size as a person reads it."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e10 else f"{size / 1e6:,.0f} MB"


def show_scan(console: Console, found: Scan, own_catalogue: Path) -> None:
    """Every model by its place, then the lines that offer what is not offered yet."""
    for place in found.places:
        there = "" if place.there else " (not there)"
        say(console, f"{place.whose}: {place.folder}{there}")
    if not found.found:
        say(console, "No models were found.")
    for one in found.found:
        _show_found(console, one)
    for trouble in found.troubles:
        warn(trouble)
    if found.entries:
        say(console, f"\nTo offer what can be loaded, add to {own_catalogue}:\n")
        say(console, found.entries)


def _show_found(console: Console, one: Found) -> None:
    say(console, f"\n{one.title} ({one.place})")
    say(console, f"  {one.path}")
    _show_examined(console, one, one.reason, one.remedy)
    if one.offered_as:
        say(console, f"  Offered already, as {one.offered_as}.")


def _show_examined(console: Console, one: Examined | None, reason: str, remedy: str) -> None:
    """What a model is, and whether it can be used, indented."""
    if one is not None:
        say(console, f"  {', '.join(_facts(one))}")
    if reason:
        say(console, f"  Cannot be used: {reason} {remedy}".rstrip(), style=_BAD)
    else:
        say(console, "  Can be used.", style=_GOOD)
    for note in one.notes if one else ():
        say(console, f"  Note: {note}")


def _facts(one: Examined) -> Iterator[str]:
    yield one.kind
    if one.architecture:
        yield one.architecture
    if one.parameters is not None:
        yield f"{one.parameters / 1e6:,.1f} M parameters"
    if one.quantisation:
        yield one.quantisation
    if one.context_length is not None:
        yield f"context {one.context_length:,}"
    yield megabytes(one.bytes_on_disk)


def show_check(console: Console, found: Check) -> None:
    """Every model that was checked, then what they are to each other."""
    for one in found.models:
        _show_checked(console, one)
    if found.together:
        said = f"{found.together} {found.remedy}".rstrip()
        say(console, said, style=Style.null() if found.usable else _BAD)
    for warning in found.warnings:
        say(console, f"Note: {warning}")


def _show_checked(console: Console, one: Checked) -> None:
    say(console, f"{one.role}: {one.name}")
    if one.model is not None:
        say(console, f"  {one.model.path}")
    _show_examined(console, one.model, one.reason, one.remedy)
    for note in one.notes:
        say(console, f"  Note: {note}")


def show_hashes(console: Console, name: str, found: HashCheck) -> None:
    """Whether a model's files are those of the Hub."""
    if found.wrong:
        said = f"{name}: not as the Hub has them: {', '.join(found.wrong)}."
        say(console, f"{said} Remove the model and fetch it again.", style=_BAD)
    if found.right:
        say(console, f"{name}: as the Hub has them: {', '.join(found.right)}.", style=_GOOD)
    if found.unknown:
        why = "not known to be from the Hub, or it cannot be asked"
        say(console, f"{name}: not compared ({why}): {', '.join(found.unknown)}.")


def show_places(console: Console) -> None:
    """Where things lie, and how much is there."""
    folders = {
        "Converted models": converted_root(),
        "Fetched files": wheel_folder(),
        "Cache": files.cache_folder(),
        "Logs": files.log_folder(),
        "Hugging Face cache": hub_cache(),
    }
    places = {
        "Settings": files.user_catalogue().parent,
        "Your models.yaml": files.user_catalogue(),
        "Shipped models.yaml": files.shipped_catalogue(),
        "History": files.history_file(),
        "Kept texts": files.kept_texts_file(),
    }
    for name, path in (places | folders).items():
        size = ""
        if path.is_dir() and name in folders:
            size = f" ({megabytes(tree_bytes(path))})"
        elif not path.exists():
            size = " (not there yet)"
        say(console, f"{name + ':':<21}{path}{size}")


def show_kept(console: Console, catalogue: Catalogue) -> None:
    """What Foretoken keeps of models on disk, and what of it no model needs any more."""
    sizes = ((converted_root(), "converted"), (wheel_folder(), "fetched"))
    told = [f"{megabytes(tree_bytes(folder))} {what}" for folder, what in sizes]
    told.append(f"{megabytes(hub_bytes(catalogue))} in the Hub's shared cache")
    say(console, f"Kept on this disk: {', '.join(told)} (`foretoken models path` tells where)")
    for folder in without_entry(catalogue):
        name = folder.name.rpartition("-")[0]
        say(
            console,
            f"{folder.name} ({megabytes(tree_bytes(folder))}) belongs to no model any more: "
            f"`foretoken models remove {name}`",
        )
