"""The lines of a catalogue that offer a draft head."""

from __future__ import annotations

from pathlib import Path

import yaml

from app.library.catalogue import Catalogue
from app.library.converted import plain_name

_LENGTH = 4
"""Draft length of the pair."""


def head_entry(catalogue: Catalogue, target: str, head: Path) -> str:
    """What to paste into `models.yaml` for this head of a target.

    The target is named by a pair, by a model, or by a folder, which then gets an entry too.
    """
    models: dict[str, object] = {}
    known = {pair.name: pair.target for pair in catalogue.pairs}
    known |= {model.name: model.name for model in catalogue.models}
    if target in known:
        name = known[target]
        title = catalogue.model(name).title
    else:
        place = Path(target).expanduser().resolve()
        name = plain_name(place.stem)
        title = place.stem
        models[name] = {"title": title, "source": {"folder": str(place)}}
    own = f"{name}-head"
    models[own] = {"title": f"Draft head for {title}", "source": {"folder": str(head.resolve())}}
    pair = {
        "title": f"{title}, n-gram else head",
        "target": name,
        "method": "ngram-else-head",
        "head": own,
        "draft_length": _LENGTH,
    }
    entry = {"models": models, "pairs": {own: pair}}
    return yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=1000).rstrip()
