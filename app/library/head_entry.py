"""The entries of a catalogue that offer a draft head."""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import count
from pathlib import Path

import msgspec
import yaml

from app.library.catalogue import Catalogue
from app.library.converted import plain_name
from app.library.entries import FolderSource, ModelEntry
from app.library.training_folder import target_entry

_LENGTH = 4
"""Draft length of the pair."""

Section = dict[str, dict[str, object]]
"""Entries by their names, as they are written."""


class HeadOffer(msgspec.Struct, frozen=True):
    """What offers a head: models, and a pair that uses it."""

    models: Section
    pairs: Section

    @property
    def pair(self) -> str:
        """The name of the pair."""
        return next(iter(self.pairs))

    def __str__(self) -> str:
        """As it is pasted into `models.yaml`."""
        return written({"models": self.models, "pairs": self.pairs})


def head_entry(catalogue: Catalogue, target: str, head: Path) -> str:
    """What to paste into `models.yaml` for this head of a target.

    The target is named by a pair, by a model, or by a folder, which then gets an entry too.
    """
    return str(head_offer(catalogue, target, head))


def head_offer(
    catalogue: Catalogue, target: str, head: Path, *, taken: Container[str] = ()
) -> HeadOffer:
    """As `head_entry`, as entries. No name is one of the catalogue's, or one that is `taken`.

    Raises Problem if the target is not there.
    """
    entry = target_entry(catalogue, target)
    known = {model.name for model in catalogue.models}
    pairs = {pair.name for pair in catalogue.pairs}
    models: Section = {}
    name = _offered(catalogue, entry)
    if name is None:
        name = next(one for one in _names(plain_name(entry.name)) if _free(one, known, taken))
        models[name] = {"title": entry.title, "source": _folder_of(entry)}
    own = next(one for one in _names(f"{name}-head") if _free(one, known | pairs, taken))
    models[own] = {
        "title": f"Draft head for {entry.title}",
        "source": {"folder": head.resolve().as_posix()},
    }
    titles = {pair.title for pair in catalogue.pairs}
    title = f"{entry.title}, n-gram else head"
    pair = {
        "title": next(one for one in _names(title, " ") if one not in titles),
        "target": name,
        "method": "ngram-else-head",
        "head": own,
        "draft_length": _LENGTH,
    }
    return HeadOffer(models, {own: pair})


def pair_with(catalogue: Catalogue, target: str, head: Path) -> str | None:
    """The name of the pair that offers this head for this target already, if there is one."""
    entry = target_entry(catalogue, target)
    name = _offered(catalogue, entry)
    place = head.resolve()
    heads = {
        model.name
        for model in catalogue.models
        if isinstance(model.source, FolderSource) and _path(model.source) == place
    }
    fitting = (pair for pair in catalogue.pairs if pair.target == name and pair.head in heads)
    return next((pair.name for pair in fitting), None)


def written(entries: object) -> str:
    """Entries as YAML text, without a line end behind the last."""
    return yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=1000).rstrip()


def _offered(catalogue: Catalogue, entry: ModelEntry) -> str | None:
    """The name under which the catalogue offers a model, be it one that was named by its folder."""
    if entry in catalogue.models:
        return entry.name
    if not isinstance(entry.source, FolderSource):
        return None
    for model in catalogue.models:
        if isinstance(model.source, FolderSource) and _path(model.source) == _path(entry.source):
            return model.name
    return None


def _names(name: str, before: str = "-") -> Iterator[str]:
    """The name, and then the name with numbers."""
    yield name
    yield from (f"{name}{before}{number}" for number in count(2))


def _free(name: str, known: set[str], taken: Container[str]) -> bool:
    return name not in known and name not in taken


def _folder_of(entry: ModelEntry) -> dict[str, object]:
    assert isinstance(entry.source, FolderSource)  # any other model is the catalogue's
    return {"folder": _path(entry.source).as_posix()}


def _path(source: FolderSource) -> Path:
    return Path(source.path).expanduser().resolve()
