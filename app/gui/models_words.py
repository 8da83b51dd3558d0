"""What the Models page says of a model, in the words of its table and of its panel."""

from __future__ import annotations

from app.gui.plain import visible
from app.library.entries import FolderSource, HubSource, ResourceSource, Source, WheelSource
from app.library.inventory import Listed
from app.run.sizes import bytes_in_words

NOTHING = "–"
"""What is not known."""
_COMMIT = 40
"""Characters of a commit's whole name."""


def kind_words(row: Listed) -> str:
    """What the pairs of the catalogue use it as, and what it is."""
    if row.fault is not None:
        return "entry"
    if row.entry is not None and row.entry.kind != "model":
        return f"{row.entry.kind.upper()} head"
    if row.is_head:
        return "head"
    kind = row.examined.kind if row.examined else ""
    form = {"GGUF file": "GGUF", "other": "other"}.get(kind, "")
    roles = ", ".join(role for role in row.roles if role != "head")
    return " · ".join(filter(None, (roles, form))) or "model"


def parameters(row: Listed) -> int | None:
    """How many weights it has: as its files say, else the catalogue."""
    if row.examined is not None and row.examined.parameters is not None:
        return row.examined.parameters
    shape = row.entry.shape if row.entry else None
    return shape.parameters if shape else None


def context_length(row: Listed) -> int | None:
    """The most tokens it reads: as its files say, else the catalogue."""
    if row.examined is not None and row.examined.context_length is not None:
        return row.examined.context_length
    shape = row.entry.shape if row.entry else None
    return shape.context_length if shape else None


def bytes_on_disk(row: Listed) -> int | None:
    """What its files take here."""
    return row.examined.bytes_on_disk if row.examined else None


def state_words(row: Listed) -> str:
    """How it stands."""
    match row.standing:
        case "ready":
            return "ready"
        case "to be converted":
            return "converted at first use"
        case "to be fetched":
            size = f" {size_words(row.download_bytes)}" if row.download_bytes else ""
            return f"to be fetched{size}"
        case _:
            return f"cannot be used: {visible(row.reason)}"


def count_words(number: int | None) -> str:
    """So many, in three digits."""
    if number is None:
        return NOTHING
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * size:
            value = number / size
            return f"{value:.0f}{letter}" if value >= 100 else f"{value:.3g}{letter}"
    return str(number)


def size_words(number: int | None) -> str:
    """So many bytes."""
    return NOTHING if number is None else bytes_in_words(number)


def source_words(source: Source) -> str:
    """Where a model comes from."""
    match source:
        case HubSource():
            named = source.revision[:12] if len(source.revision) == _COMMIT else source.revision
            revision = "" if named == "main" else f", revision {named}"
            return f"Hugging Face Hub: {source.repo}{revision}"
        case WheelSource():
            return f"Python package index: {source.package} {source.version}"
        case ResourceSource():
            return "ships with Foretoken"
        case FolderSource():
            return "on this machine"
