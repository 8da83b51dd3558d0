"""The pre-flight of a model, or of every model of a pair and of what they are to each other."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from app.library.catalogue import Catalogue
from app.library.compatibility import report
from app.library.entries import FolderSource, HubSource, ModelEntry, PairEntry, WheelSource
from app.library.entry_reading import nearest
from app.library.examining import Examined, examine
from app.library.head_folder import check_head, is_head, refuse_unfit
from app.library.hub_cache import find_in_cache
from app.library.local_folder import find_on_disk
from app.library.preflight import check
from app.library.scan_candidates import Candidate, Kind
from app.library.sources import look
from app.library.wheel import member_here
from app.run.methods import Method
from app.run.problems import Problem


class Checked(msgspec.Struct, frozen=True):
    """A model that was checked, and as what."""

    name: str
    role: str
    """`target`, `draft` and `head` of a pair; `model` by itself."""
    model: Examined | None
    """None: nothing of it is on this machine."""
    reason: str = ""
    """Why it cannot be used."""
    remedy: str = ""
    notes: tuple[str, ...] = ()


class Check(msgspec.Struct, frozen=True):
    """The outcome of a check."""

    models: tuple[Checked, ...]
    together: str = ""
    """What the models of a pair are to each other, in a sentence; empty for a model by itself."""
    remedy: str = ""
    warnings: tuple[str, ...] = ()
    fits: bool = True
    """Whether the models can work together."""

    @property
    def usable(self) -> bool:
        """Whether everything that was checked can be used."""
        return self.fits and not any(model.reason for model in self.models)


def check_named(catalogue: Catalogue, name: str) -> Check:
    """Checks a pair, a model, or a path. Raises Problem for what is none of these."""
    pair = next((pair for pair in catalogue.pairs if pair.name == name), None)
    if pair is not None:
        return _check_pair(catalogue, pair)
    entry = next((model for model in catalogue.models if model.name == name), None)
    if entry is not None:
        return Check((_check_entry(entry, "model"),))
    if not is_path(name):
        known = [pair.name for pair in catalogue.pairs]
        known += [model.name for model in catalogue.models]
        raise Problem(
            f"{name!r} is no pair or model of the catalogue, and no path on this machine.",
            nearest(name, known),
        )
    path = find_on_disk(name)
    return Check((_checked(path.name, "model", path),))


def is_path(name: str) -> bool:
    """Whether a word is a path, by how it is written or because it is there."""
    if name.startswith(("~", ".")) or "/" in name or "\\" in name:
        return True
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return True


def _check_pair(catalogue: Catalogue, pair: PairEntry) -> Check:
    """Every model of a pair, then the pair."""
    roles = (("target", pair.target), ("draft", pair.draft), ("head", pair.head))
    models = {
        role: _check_entry(catalogue.model(name), role) for role, name in roles if name is not None
    }
    checked = tuple(models.values())
    if any(one.reason for one in checked):
        said = "Whether they fit each other cannot be told before each can be used."
        return Check(checked, said if len(checked) > 1 else "")
    if len(checked) == 1:
        return Check(checked)
    found = [
        _fit(models["target"], one, Method.named(pair.method))
        for role, one in models.items()
        if role != "target"
    ]
    refused = [one for one in found if not one.fits]
    if refused:
        return msgspec.structs.replace(refused[0], models=checked)
    together = " ".join(one.together for one in found if one.together)
    warnings = tuple(warning for one in found for warning in one.warnings)
    return Check(checked, together or f"Target and {_and(models)} fit each other.", "", warnings)


def _and(roles: Iterable[str]) -> str:
    return " and ".join(role for role in roles if role != "target")


def _fit(target: Checked, other: Checked, method: Method) -> Check:
    """Whether a draft or a head can guess for a target with this method."""
    assert target.model is not None
    assert other.model is not None
    unread = [one.name for one in (target, other) if one.model and one.model.path.is_file()]
    if unread:
        said = f"The {other.role} is compared with the target once {unread[0]} is converted"
        return Check((), f"{said} (`foretoken models fetch {unread[0]}`).")
    try:
        if other.role == "head":
            warning = refuse_unfit(check_head(other.model.path), check(target.model.path))
            return Check((), warnings=(warning,) if warning else ())
    except Problem as problem:
        return Check((), problem.message, problem.remedy, fits=False)
    found = report(target.model.path, other.model.path)
    if not found.fits:
        said = f"They cannot work as a pair: {found.reason}"
        return Check((), said, found.remedy, fits=False)
    if not found.same_ids and method.drafter == "model" and not method.any_vocabulary:
        said = f"The method {method.name} needs the same ids for both: {found.reason}"
        return Check((), said, "Write `method: tli`, or `slem`.", fits=False)
    return Check((), warnings=found.warnings)


def _check_entry(entry: ModelEntry, role: str) -> Checked:
    """A model of the catalogue: its folder, or the file that it will be converted from."""
    source = entry.source
    try:
        place = look(entry)
        if place is None and isinstance(source, FolderSource):
            place = find_on_disk(source.path)
        elif place is None and isinstance(source, WheelSource):
            place = member_here(source)
        elif place is None and isinstance(source, HubSource):
            place = find_in_cache(source)
    except Problem as problem:
        return Checked(entry.name, role, None, problem.message, problem.remedy)
    if place is None:
        remedy = f"Run `foretoken models fetch {entry.name}`."
        return Checked(entry.name, role, None, "It is not on this machine yet.", remedy)
    return _checked(entry.name, role, place)


def _checked(name: str, role: str, place: Path) -> Checked:
    """What lies at a place, examined as what it is used for."""
    kind: Kind = "GGUF file" if place.is_file() else "safetensors folder"
    kind = "draft head" if is_head(place) else kind
    candidate = Candidate(title=name, place="", path=place, kind=kind)
    found = examine(candidate)
    reason, remedy = found.reason, found.remedy
    if not reason and role in ("target", "draft") and kind == "draft head":
        reason, remedy = f"It is a draft head, not a {role} model.", "Name it as `head:`."
    if not reason and role == "head" and kind != "draft head":
        reason, remedy = "It is a model, not a draft head.", "Name it as `draft:`."
    if kind == "GGUF file" and not reason:
        return Checked(name, role, found, notes=("It is converted at its first use.",))
    return Checked(name, role, found, reason, remedy)
