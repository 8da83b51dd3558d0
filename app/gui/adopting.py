"""Entries that are added to the person's own catalogue, and the catalogue as it is from then on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from app import files
from app.library.catalogue import Catalogue, load_catalogue


class Adopted(NamedTuple):
    """What holds once a pair is offered."""

    catalogue: Catalogue
    pair: str
    """Its name."""
    added: bool
    """Whether it was not offered before."""


def current_catalogue() -> Catalogue:
    """What ships with the program, and the person's own."""
    return load_catalogue([files.shipped_catalogue(), files.user_catalogue()])


def adopt(offer: Callable[[Path, Catalogue], str]) -> Adopted:
    """Lets `offer` add to the person's own file what makes a pair, which it names.

    Raises Problem if the file cannot be added to.
    """
    before = current_catalogue()
    pair = offer(files.user_catalogue(), before)
    catalogue = current_catalogue()
    catalogue.pair(pair)
    return Adopted(catalogue, pair, added=all(known.name != pair for known in before.pairs))
