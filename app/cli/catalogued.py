"""The catalogue as a command sees it, and the models that a name means."""

from __future__ import annotations

from app import files
from app.cli.screen import warn
from app.library.catalogue import Catalogue, load_catalogue
from app.library.entries import ModelEntry
from app.run.problems import Problem


def catalogue() -> Catalogue:
    """The shipped catalogue and the person's own; what is wrong in them is told on stderr."""
    found = load_catalogue([files.shipped_catalogue(), files.user_catalogue()])
    for fault in found.faults:
        warn(str(fault))
    return found


def models_named(found: Catalogue, name: str) -> list[ModelEntry]:
    """The models of the pair of this name, or the model itself. Raises Problem for neither."""
    for pair in found.pairs:
        if pair.name == name:
            return list(found.models_of(name))
    try:
        return [found.model(name)]
    except Problem as problem:
        pairs = ", ".join(pair.name for pair in found.pairs)
        raise Problem(problem.message, f"{problem.remedy} Pairs: {pairs or 'none'}.") from problem
