"""Entries that are to be added to a catalogue: models that are new to it, and a pair of them."""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import count
from pathlib import Path

import msgspec
import yaml

from app.library.catalogue import Catalogue
from app.library.entries import FolderSource, HubSource, ModelEntry

Section = dict[str, dict[str, object]]
"""Entries by their names, as they are written."""


class Offer(msgspec.Struct, frozen=True):
    """A pair, and those of its models that the catalogue does not offer yet."""

    models: Section
    pairs: Section

    @property
    def pair(self) -> str:
        """The name of the pair."""
        return next(iter(self.pairs))

    def __str__(self) -> str:
        """As it is pasted into `models.yaml`."""
        sections = {"models": self.models, "pairs": self.pairs}
        return written({name: entries for name, entries in sections.items() if entries})


def offered_name(catalogue: Catalogue, entry: ModelEntry) -> str | None:
    """The name under which the catalogue offers a model, be it one that was named by its folder."""
    if entry in catalogue.models:
        return entry.name
    same = (model.name for model in catalogue.models if _is_same(model, entry))
    return next(same, None)


def free_name(name: str, taken: Container[str], before: str = "-") -> str:
    """The name, or with the first number behind it that makes it one that is not taken."""
    return next(one for one in _names(name, before) if one not in taken)


def written_model(entry: ModelEntry) -> dict[str, object]:
    """A model's entry below its name; of a folder or of the Hub, for others are the catalogue's."""
    source = entry.source
    assert isinstance(source, FolderSource | HubSource)
    if isinstance(source, FolderSource):
        source = FolderSource(_path(source).as_posix())
    fields = {name: value for name, value in msgspec.to_builtins(source).items() if value}
    del fields["type"]
    return {"title": entry.title, "source": fields}


def written(entries: object) -> str:
    """Entries as YAML text, without a line end behind the last."""
    return yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=1000).rstrip()


def _is_same(one: ModelEntry, other: ModelEntry) -> bool:
    if isinstance(one.source, FolderSource) and isinstance(other.source, FolderSource):
        return _path(one.source) == _path(other.source)
    return one.source == other.source


def _path(source: FolderSource) -> Path:
    return Path(source.path).expanduser().resolve()


def _names(name: str, before: str) -> Iterator[str]:
    """The name, and then the name with numbers."""
    yield name
    yield from (f"{name}{before}{number}" for number in count(2))
