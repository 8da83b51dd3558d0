"""The entries of a catalogue that make a pair of two models, or of a model and nothing else."""

from __future__ import annotations

from collections.abc import Container
from typing import Literal

from app.library.catalogue import Catalogue
from app.library.compatibility import report
from app.library.converted import plain_name
from app.library.entries import ModelEntry
from app.library.offer import Offer, Section, free_name, offered_name, written_model
from app.library.sources import locate

Role = Literal["draft", "head"]
"""What guesses ahead of a target: a model of its own, or a head that reads what it thinks."""

_METHODS: dict[Role | None, str] = {
    None: "ngram",
    "head": "ngram-else-head",
}
_ANY_VOCABULARY = {"fits by intersection": "tli", "fits by text": "slem"}
"""Methods of a draft that reads another vocabulary, by what it and its target are to each other."""
_LENGTHS: dict[Role | None, int] = {None: 8, "draft": 4, "head": 8}
"""Draft lengths: copies may be long, and a head has a length of its own."""


def pair_offer(
    catalogue: Catalogue,
    target: ModelEntry,
    guesser: ModelEntry | None,
    *,
    role: Role | None,
    taken: Container[str] = (),
) -> Offer:
    """A pair of these models; without a guesser, text that repeats itself is copied.

    Models that the catalogue does not offer get an entry too. No name is one of the catalogue's,
    or one that is `taken`.
    """
    known = _Taken(catalogue, taken)
    models: Section = {}

    def named(entry: ModelEntry) -> str:
        name = offered_name(catalogue, entry)
        if name is None:
            name = free_name(plain_name(entry.name), known)
            models[name] = written_model(entry)
            known.names.add(name)
        return name

    first = named(target)
    method = _draft_method(target, guesser) if role == "draft" else _METHODS[role]
    pair: dict[str, object] = {"target": first, "method": method}
    name, title = f"{first}-ngram", f"{target.title}, n-gram"
    if guesser is not None:
        assert role is not None
        second = pair[role] = named(guesser)
        name = second if role == "head" and second in models else f"{first}-with-{second}"
        told = f"draft {guesser.title}" if role == "draft" else "n-gram else head"
        title = f"{target.title}, {told}"
    pair["draft_length"] = _LENGTHS[role]
    known.names -= models.keys()  # a head and its pair may have one name
    title = free_name(title, {pair.title for pair in catalogue.pairs}, " ")
    return Offer(models, {free_name(name, known): {"title": title, **pair}})


def known_pair(
    catalogue: Catalogue, target: ModelEntry, guesser: ModelEntry | None, *, role: Role | None
) -> str | None:
    """The first pair of these models that the catalogue offers; without a guesser, of the target.

    Of several the one that opens first comes before the others.
    """
    first = offered_name(catalogue, target)
    second = offered_name(catalogue, guesser) if guesser is not None else None
    if first is None or (guesser is not None and second is None):
        return None
    fitting = [
        pair.name
        for pair in catalogue.pairs
        if pair.target == first and (role is None or getattr(pair, role) == second)
    ]
    return catalogue.default if catalogue.default in fitting else next(iter(fitting), None)


def _draft_method(target: ModelEntry, draft: ModelEntry | None) -> str:
    """What a draft model is asked by, as far as the files on this machine tell."""
    folders = [locate(entry) for entry in (target, draft) if entry is not None]
    found = [folder for folder in folders if folder is not None]
    verdict = report(found[0], found[1]).verdict if len(found) == 2 else "fits"
    return _ANY_VOCABULARY.get(verdict, "draft-model")


class _Taken(Container[str]):
    """Names of a catalogue, of its file, and of what is about to be added."""

    def __init__(self, catalogue: Catalogue, taken: Container[str]) -> None:
        self.names = {model.name for model in catalogue.models}
        self.names |= {pair.name for pair in catalogue.pairs}
        self._also = taken

    def __contains__(self, name: object) -> bool:
        return name in self.names or name in self._also
