"""The lines of a catalogue that offer what a scan has found."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import count
from pathlib import Path

import yaml

from app.library.catalogue import Catalogue
from app.library.converted import plain_name
from app.library.entries import FolderSource, HubSource, ModelEntry, WheelSource
from app.library.local_folder import find_on_disk
from app.library.wheel import member_here, unpacked_member
from app.run.problems import Problem

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Offering:
    """Names what is found, each differently, and knows what the catalogue offers already."""

    def __init__(self, catalogue: Catalogue) -> None:
        models = catalogue.models
        self._taken = {model.name for model in models} | {pair.name for pair in catalogue.pairs}
        self._repositories = {
            (model.source.repo, model.source.revision, model.source.file): model.name
            for model in models
            if isinstance(model.source, HubSource)
        }
        self._places = {
            place: model.name for model in models if (place := _place(model)) is not None
        }

    def offered_as(self, source: FolderSource | HubSource | None, path: Path) -> str:
        """The name under which the catalogue offers this already; empty if it does not."""
        if isinstance(source, HubSource) and (
            name := self._repositories.get((source.repo, source.revision, source.file))
        ):
            return name
        try:
            return self._places.get(path.resolve(), "")
        except (OSError, RuntimeError):  # links in a circle
            return ""

    def entry(self, title: str, source: FolderSource | HubSource) -> dict[str, object]:
        """A model's entry below its name, which nothing else has; empty if it cannot be written."""
        if isinstance(source, FolderSource) and _CONTROL.search(source.path):
            return {}
        plain = plain_name(title.rsplit("/", 1)[-1])
        name = next(name for name in _names(plain) if name not in self._taken)
        self._taken.add(name)
        if isinstance(source, FolderSource):
            written: dict[str, object] = {"folder": source.path}
        else:
            written = {"hub": source.repo, "revision": source.revision}
        return {name: {"title": title, "source": written}}


def written(models: dict[str, object]) -> str:
    """Entries as the text that is pasted into `models.yaml`; empty for none."""
    if not models:
        return ""
    text = yaml.safe_dump({"models": models}, sort_keys=False, allow_unicode=True, width=100_000)
    return text.rstrip()


def _place(model: ModelEntry) -> Path | None:
    """Where a model of the catalogue lies, if its source is a place on this machine."""
    source = model.source
    try:
        if isinstance(source, WheelSource):
            return (member_here(source) or unpacked_member(source)).resolve()
        return find_on_disk(source.path).resolve() if isinstance(source, FolderSource) else None
    except (Problem, OSError, RuntimeError):
        return None


def _names(plain: str) -> Iterable[str]:
    """The name, then the name with a number."""
    yield plain
    yield from (f"{plain}-{number}" for number in count(2))
