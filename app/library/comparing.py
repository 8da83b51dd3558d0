"""What two models are to each other, each named by the catalogue or by its folder."""

from __future__ import annotations

from pathlib import Path

from app.library.catalogue import Catalogue
from app.library.checking import is_path
from app.library.compatibility import report
from app.library.compatibility_report import CompatibilityReport
from app.library.entries import FolderSource
from app.library.entry_reading import nearest
from app.library.head_folder import is_head
from app.library.local_folder import find_on_disk
from app.library.sources import look
from app.run.problems import Problem


def compare_named(catalogue: Catalogue, target: str, draft: str) -> CompatibilityReport:
    """The report on a target and a draft, each a model of the catalogue or a path.

    Raises Problem for a name that is neither, for a model that is not ready on this machine, and
    for a draft head.
    """
    return report(_folder(catalogue, target), _folder(catalogue, draft))


def _folder(catalogue: Catalogue, name: str) -> Path:
    """The folder of a model, which need not be whole."""
    place = _place(catalogue, name)
    if place is not None and place.is_file():
        raise Problem(
            f"{name} is a file, which is compared once it is converted into a folder.",
            "Name it in your `models.yaml`, and run `foretoken models fetch` with that name.",
        )
    if place is None:
        raise Problem(
            f"{name} is not ready on this machine, and is compared once it is.",
            f"Run `foretoken models fetch {name}`, for a model of your `models.yaml`.",
        )
    if is_head(place):
        raise Problem(
            f"{name} is a draft head: it has no vocabulary of its own.",
            "`foretoken models check` holds a pair's head against its target.",
        )
    return place


def _place(catalogue: Catalogue, name: str) -> Path | None:
    """Where a model lies: a folder, a file that is not converted yet, or nowhere."""
    entry = next((model for model in catalogue.models if model.name == name), None)
    if entry is not None:
        lies_here = isinstance(entry.source, FolderSource) and find_on_disk(entry.source.path)
        return lies_here if lies_here and lies_here.is_dir() else look(entry)
    if is_path(name):
        return find_on_disk(name)
    raise Problem(
        f"{name!r} is no model of the catalogue, and no path on this machine.",
        nearest(name, [model.name for model in catalogue.models]),
    )
