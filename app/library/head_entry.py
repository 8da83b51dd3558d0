"""The entries of a catalogue that offer a draft head."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from app.library.catalogue import Catalogue
from app.library.converted import plain_name
from app.library.entries import FolderSource, ModelEntry
from app.library.offer import Offer, offered_name
from app.library.pair_entry import known_pair, pair_offer
from app.library.training_folder import target_entry


def head_entry(catalogue: Catalogue, target: str, head: Path) -> str:
    """What to paste into `models.yaml` for this head of a target.

    The target is named by a pair, by a model, or by a folder, which then gets an entry too.
    """
    return str(head_offer(catalogue, target, head))


def head_offer(
    catalogue: Catalogue, target: str, head: Path, *, taken: Container[str] = ()
) -> Offer:
    """As `head_entry`, as entries. No name is one of the catalogue's, or one that is `taken`.

    Raises Problem if the target is not there.
    """
    entry = target_entry(catalogue, target)
    name = offered_name(catalogue, entry) or plain_name(entry.name)
    return pair_offer(catalogue, entry, _entry_of(entry, name, head), role="head", taken=taken)


def pair_with(catalogue: Catalogue, target: str, head: Path) -> str | None:
    """The name of the pair that offers this head for this target already, if there is one."""
    entry = target_entry(catalogue, target)
    return known_pair(catalogue, entry, _entry_of(entry, entry.name, head), role="head")


def _entry_of(target: ModelEntry, name: str, head: Path) -> ModelEntry:
    """A head as a model."""
    source = FolderSource(str(head.resolve()))
    return ModelEntry(f"{name}-head", f"Draft head for {target.title}", source)
