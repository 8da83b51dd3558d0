"""The set-up of settings that have not been run: its models are named as the catalogue has them."""

from __future__ import annotations

from app.elsewhere.setup import PLACE, Setup
from app.library.catalogue import Catalogue
from app.library.entries import HubSource
from app.run.methods import METHODS
from app.run.settings import RunSettings


def setup_offered(settings: RunSettings, catalogue: Catalogue) -> Setup:
    """The set-up of settings whose pair the catalogue has. Raises Problem if it has none such."""
    pair = catalogue.pair(settings.pair)
    guesser = {"model": pair.draft, "head": pair.head}.get(METHODS[settings.method].drafter)
    draft = _named(catalogue, guesser) if guesser else ""
    precision = settings.precision or ""
    draft_precision = settings.draft_precision or pair.draft_precision or precision
    return Setup(
        settings,
        _named(catalogue, pair.target),
        draft,
        precision,
        draft_precision if draft else "",
    )


def _named(catalogue: Catalogue, name: str) -> str:
    source = catalogue.model(name).source
    return source.repo if isinstance(source, HubSource) else f"{PLACE}{name}"
