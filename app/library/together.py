"""What two models are to each other, told before they are used as a pair."""

from __future__ import annotations

from typing import Literal

import msgspec

from app.library.catalogue import Catalogue
from app.library.checking import Check, check_named
from app.library.entries import ModelEntry, PairEntry
from app.library.overview import Overview
from app.library.pair_entry import Role
from app.library.sources import is_download_needed

_NAME = "these two"


class Together(msgspec.Struct, frozen=True):
    """A verdict, with its reason in a sentence or two."""

    verdict: Literal["fits", "cannot", "open"]
    """`open`: it cannot be told before both are on this machine, and converted."""
    reason: str = ""
    remedy: str = ""


def together(target: ModelEntry, guesser: ModelEntry, *, role: Role) -> Together:
    """Whether a model or a head can guess for a target. Loads nothing, and never raises Problem."""
    missing = [entry.title for entry in (target, guesser) if is_download_needed(entry)]
    if missing:
        return Together("open", f"Told once {missing[0]} is on this machine.")
    method = "slem" if role == "draft" else "head"  # any vocabulary is a draft's for that
    draft, head = (guesser.name, None) if role == "draft" else (None, guesser.name)
    pair = PairEntry(_NAME, _NAME, target.name, method, draft=draft, head=head)
    models = tuple(dict.fromkeys((target, guesser)))
    return _judged(check_named(Catalogue(models=models, pairs=(pair,)), _NAME), role)


def obstacles(catalogue: Catalogue, standings: Overview) -> dict[str, Together]:
    """The pairs of a catalogue that cannot be used, by their names, with why."""
    found: dict[str, Together] = {}
    for pair in standings.pairs:
        if pair.standing in ("ready", "faulty"):
            role: Role | None = "head" if pair.entry.head else "draft" if pair.entry.draft else None
            seen = _judged(check_named(catalogue, pair.entry.name), role)
            found |= {pair.entry.name: seen} if seen.verdict == "cannot" else {}
    return found


def _judged(check: Check, role: Role | None) -> Together:
    """A check of a pair as a verdict."""
    for one in check.models:
        if one.reason:
            return Together("cannot", f"{one.name}: {one.reason}", one.remedy)
    if not check.fits:
        return Together("cannot", check.together, check.remedy)
    if any(one.model is not None and one.model.path.is_file() for one in check.models):
        return Together("open", check.together)
    same = {"draft": "Every id means the same to both.", "head": "Its sizes are the target's."}
    return Together("fits", " ".join(check.warnings) or same.get(role or "", ""))
