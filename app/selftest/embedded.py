"""The pair that ships with the program, if its model is on this machine."""

from __future__ import annotations

from app import files
from app.library.catalogue import Catalogue, load_catalogue
from app.library.sources import is_download_needed

PAIR = "embedded"


def catalogue() -> Catalogue:
    """What ships, and the person's own entries."""
    return load_catalogue([files.shipped_catalogue(), files.user_catalogue()])


def has_embedded(offered: Catalogue) -> bool:
    """Whether the embedded pair's models can be had without the network."""
    return not any(is_download_needed(model) for model in offered.models_of(PAIR))
