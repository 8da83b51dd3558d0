"""A run as a speculative config of vLLM means it, with the pair of the catalogue that it names."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.elsewhere.vllm_config import Wanted, read_vllm
from app.library.catalogue import Catalogue
from app.library.entries import FolderSource, HubSource, ModelEntry, PairEntry
from app.library.entry_reading import nearest
from app.run.methods import METHODS, Drafter
from app.run.problems import Problem
from app.run.rules import Rule
from app.run.settings import RunSettings

_ROLES: dict[Drafter, str] = {"model": "draft", "head": "head"}
"""The field of a pair that names what a method asks."""


def in_vllm_words(
    settings: RunSettings, text: str, catalogue: Catalogue, *, asked: str | None
) -> tuple[RunSettings, tuple[str, ...]]:
    """The settings as vLLM's JSON changes them, and notes of what has no effect.

    `asked`: the pair that was asked for by name. Raises Problem.
    """
    wanted = read_vllm(text, settings.sampling)
    pair = wanted_pair(catalogue, wanted, asked=asked, near=settings.pair)
    own, said = settings.draft_precision, wanted.draft_precision
    if own and said and own != said:
        raise Problem(
            f"The draft is to be in {own}, and by the speculative config in {said}.",
            "Leave one of them out.",
        )
    changed = msgspec.structs.replace(
        settings,
        pair=pair.name,
        method=wanted.method,
        method_options=METHODS[wanted.method].filled(wanted.method_options),
        draft_length=wanted.draft_length,
        draft_length_policy="fixed",
        draft_length_options={},
        rule=wanted.rule,
        rule_options=Rule.named(wanted.rule).filled(wanted.rule_options),
        draft_precision=said or own,
    )
    named = pair.name in (asked, settings.pair)
    return changed, (*wanted.notes, *(() if named else (f"The pair is {pair.name}.",)))


def wanted_pair(catalogue: Catalogue, wanted: Wanted, *, asked: str | None, near: str) -> PairEntry:
    """The pair to run: the one that was asked for, if it has this draft, else the first that has.

    The pair that is near at hand comes first, then those of its target. Raises Problem if there is
    none.
    """
    chosen = catalogue.pair(asked or near)
    role = _ROLES.get(METHODS[wanted.method].drafter)
    if role is None:
        return _own(catalogue, wanted, chosen)
    fitting = _pairs(catalogue, wanted, role)
    names = ", ".join(pair.name for pair in fitting)
    if asked and asked not in (pair.name for pair in fitting):
        said = f"The pair {asked!r} has no {role} {wanted.model!r}."
        raise Problem(said, f"These have: {names}. Choose one, or leave --pair out.")
    same_target = [pair for pair in fitting if pair.target == chosen.target]
    return chosen if chosen in fitting else (*same_target, *fitting)[0]


def _own(catalogue: Catalogue, wanted: Wanted, pair: PairEntry) -> PairEntry:
    """The pair, for a method whose guesses come from the target itself or from the text."""
    target = catalogue.model(pair.target)
    if wanted.model and not means(wanted.model, target):
        raise Problem(
            f"The method {wanted.method!r} guesses with the target itself, here {target.name!r}, "
            f"and not with {wanted.model!r}.",
            "Leave the model out of the JSON, or choose another pair with --pair.",
        )
    return pair


def _pairs(catalogue: Catalogue, wanted: Wanted, role: str) -> list[PairEntry]:
    """Every pair with the model that is wanted in this role; Problem if there is none."""
    if not wanted.model:
        raise Problem(
            f"The speculative config names no model for the method {wanted.method!r}.",
            f'Add "model": the name of a {role} in `foretoken models`, its repository or folder.',
        )
    meant = [entry for entry in catalogue.models if means(wanted.model, entry)]
    if not meant:
        known = [word for entry in catalogue.models for word in words(entry)]
        raise Problem(
            f"The catalogue has no model {wanted.model!r}.",
            f"{nearest(wanted.model, known).partition('Known:')[0]}Add it to your models.yaml, "
            "whose place `foretoken models` tells, with a pair that uses it.",
        )
    for entry in meant:
        _check_revision(wanted, entry)
    names = {entry.name for entry in meant}
    found = [pair for pair in catalogue.pairs if getattr(pair, role) in names]
    if not found:
        raise Problem(
            f"No pair of the catalogue has {wanted.model!r} as its {role}.",
            f"Add one to your models.yaml: target, method: {wanted.method}, and "
            f"{role}: {meant[0].name}.",
        )
    return found


def means(word: str, entry: ModelEntry) -> bool:
    """Whether vLLM's word for a model means this entry: its name, repository or folder."""
    if isinstance(entry.source, FolderSource):
        same = Path(word).expanduser().absolute() == Path(entry.source.path).absolute()
        return same or word == entry.name
    return word.casefold() in (each.casefold() for each in words(entry))


def words(entry: ModelEntry) -> list[str]:
    """Every word that means this entry."""
    source = entry.source
    more = source.repo if isinstance(source, HubSource) else ""
    more = source.path if isinstance(source, FolderSource) else more
    return [entry.name, more] if more else [entry.name]


def _check_revision(wanted: Wanted, entry: ModelEntry) -> None:
    kept = entry.source.revision if isinstance(entry.source, HubSource) else ""
    if wanted.revision and wanted.revision != kept:
        has = f"has revision {kept}" if kept else "has no revisions"
        raise Problem(
            f"revision: {wanted.revision} cannot be honoured: {entry.name!r} {has} in the "
            "catalogue.",
            "Leave the revision out, or give the model's entry in your models.yaml that revision.",
        )
