"""Entries added to the person's own catalogue file: what stands there stays, to the letter."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Container
from pathlib import Path
from tempfile import NamedTemporaryFile

import yaml

from app.library.catalogue import Catalogue
from app.library.catalogue_reading import CatalogueFile, read_catalogue_text
from app.library.entries import Fault, ModelEntry
from app.library.head_entry import head_offer, pair_with
from app.library.offer import Offer, Section, written
from app.library.pair_entry import Role, known_pair, pair_offer
from app.library.yaml_nodes import compose_text, keys, node_at
from app.run.problems import Problem

_BOM = "\ufeff"
_NULL = "tag:yaml.org,2002:null"


def offer_head(file: Path, catalogue: Catalogue, target: str, head: Path) -> str:
    """Adds what offers a trained head to a catalogue file; the name of the pair that uses it.

    Nothing is written if the catalogue, of which the file is a part, offers it already. Raises
    Problem, with the file as it was, if the file cannot be read or written, or not be added to.
    """
    known = pair_with(catalogue, target, head)
    return known or _add(file, lambda taken: head_offer(catalogue, target, head, taken=taken))


def offer_pair(
    file: Path,
    catalogue: Catalogue,
    target: ModelEntry,
    guesser: ModelEntry | None,
    *,
    role: Role | None,
) -> str:
    """As `offer_head`, for a pair of any two models, or of a target and nothing beside it."""
    known = known_pair(catalogue, target, guesser, role=role)
    return known or _add(
        file, lambda taken: pair_offer(catalogue, target, guesser, role=role, taken=taken)
    )


def _add(file: Path, make: Callable[[Container[str]], Offer]) -> str:
    """Adds an offer, made to differ from the names that the file holds; the name of its pair."""
    before = _bytes(file)
    text = _decoded(file, before)
    top, faults = compose_text(file, text)
    if faults:
        raise _unreadable(faults[0])
    offer = make({name for part in ("models", "pairs") for name in _written_names(top, part)})
    after = text
    for section, entries in (("pairs", offer.pairs), ("models", offer.models)):
        after = _with_entries(file, after, section, entries) if entries else after
    _require_kept(file, text, after, offer)
    _replace(file, before, after)
    return offer.pair


def _with_entries(file: Path, text: str, section: str, entries: Section) -> str:
    """The text with entries put at the head of a section, which is made if it is not there."""
    end = "\r\n" if "\r\n" in text else "\n"
    top, _ = compose_text(file, text)
    places = [(key, value) for name, key, value in keys(top) if name == section] if top else []
    if not places and top is not None and top.flow_style:
        return _in_braces(text, top, {section: entries})
    if not places:
        margin = top.start_mark.column if top else 0
        lines = _indented(written({section: entries}), margin)
        joint = end if text and not text.endswith("\n") else ""
        return text + joint + end.join(lines) + end
    key, value = places[0]
    within = top is not None and top.flow_style
    if isinstance(value, yaml.MappingNode) and value.flow_style and (value.value or within):
        return _in_braces(text, value, entries)
    if not value.value or value.tag == _NULL:  # `{}`, `~` and nothing at all make room
        text = text[: value.start_mark.index] + text[value.end_mark.index :]
    inside = isinstance(value, yaml.MappingNode) and value.value
    margin = value.value[0][0].start_mark.column if inside else key.start_mark.column + 2
    lines = _indented(written(entries), margin)
    cut = text.find("\n", key.end_mark.index) + 1
    if not cut:
        text, cut = text + end, len(text) + len(end)
    return text[:cut] + end.join(lines) + end + text[cut:]


def _in_braces(text: str, node: yaml.MappingNode, entries: object) -> str:
    """The text with entries put first into a mapping that is written in braces."""
    flow = yaml.safe_dump(
        entries, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6
    )
    at = text.index("{", node.start_mark.index) + 1
    return f"{text[:at]}{flow.strip()[1:-1]}{', ' if node.value else ''}{text[at:]}"


def _indented(text: str, margin: int) -> list[str]:
    return [f"{' ' * margin}{line}" for line in text.split("\n")]


def _require_kept(file: Path, text: str, after: str, offer: Offer) -> None:
    """Raises Problem unless the new text says all that the old one says, and the offer."""
    old, new = (read_catalogue_text(file, one) for one in (text, after))
    names = {model.name for model in new.models}
    added = offer.models.keys() <= names and offer.pair in _pairs(new)
    kept = (
        all(model in new.models for model in old.models)
        and all(_pairs(new).get(name) == pair for name, pair in _pairs(old).items())
        and (old.default and old.default[0]) == (new.default and new.default[0])
        and len(old.faults) == len(new.faults)
    )
    if not (added and kept):
        raise Problem(
            f"Nothing could be added to {file} without a change to what stands there.",
            f"Add this to it by hand:\n\n{offer}",
        )


def _pairs(found: CatalogueFile) -> dict[str, object]:
    return {pair.entry.name: pair.entry for pair in found.pairs}


def _written_names(top: yaml.MappingNode | None, section: str) -> list[str]:
    """The names in a section, also those of faulty entries."""
    node = node_at(top, [section]) if top else None
    if not isinstance(node, yaml.MappingNode) or node is top:
        return []
    return [name for name, _, _ in keys(node)]


def _bytes(file: Path) -> bytes | None:
    """What is in the file; None if there is none."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Problem(
            f"{file} cannot be read: {error.strerror or error}.",
            "Check that it is a file you may read.",
        ) from None


def _decoded(file: Path, content: bytes | None) -> str:
    try:
        return (content or b"").decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Problem(
            f"{file} is not UTF-8 text, so nothing was added to it.", "Save it as UTF-8."
        ) from None


def _unreadable(fault: Fault) -> Problem:
    where = f"{fault.file}, line {fault.line}, column {fault.column}"
    return Problem(f"Nothing was added to {where}: {fault.message}", fault.remedy)


def _replace(file: Path, before: bytes | None, text: str) -> None:
    """Puts the new text in the place of what was there before, whole or not at all.

    The file that a link stands for is replaced, not the link.
    """
    goal = file.resolve()
    mark = _BOM if (before or b"").startswith(_BOM.encode()) else ""
    unfinished = ""
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(
            "wb", dir=goal.parent, prefix=f".{goal.name}.", suffix=".part", delete=False
        ) as stream:
            unfinished = stream.name
            stream.write((mark + text).encode())
            stream.flush()
            os.fsync(stream.fileno())
        if before is not None:
            shutil.copymode(goal, unfinished)
        if _bytes(file) != before:
            raise Problem(f"{file} has just been changed by another program.", "Try again.")
        os.replace(unfinished, goal)
    except OSError as error:
        raise Problem(
            f"{file} cannot be written: {error.strerror or error}.",
            "Check that you may write there, and that the disk has room.",
        ) from None
    finally:
        if unfinished:
            Path(unfinished).unlink(missing_ok=True)
