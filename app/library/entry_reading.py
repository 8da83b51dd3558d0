"""One entry of a catalogue file: from a YAML node to a model or a pair, or to a fault."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml

from app.library.entries import (
    Fault,
    FolderSource,
    HubSource,
    ModelEntry,
    PairEntry,
    ResourceSource,
    Source,
    WheelSource,
)
from app.library.shape import Shape
from app.library.yaml_nodes import fault_at, keys, node_at, repeated_key, value_of, yaml_fault
from app.run.draft_lengths import LENGTH_POLICIES
from app.run.methods import METHODS
from app.run.options import Offer
from app.run.problems import Problem
from app.run.rules import RULES
from app.run.settings import OptionValue

_SOURCES: dict[str, type[Source]] = {
    "wheel": WheelSource,
    "folder": FolderSource,
    "hub": HubSource,
    "resource": ResourceSource,
}
_DRAFTERS = {"model": ("draft", "model"), "head": ("head", "head")}
"""By what a method asks: the field of a pair that names it, and what that is called."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_Entry = TypeVar("_Entry", ModelEntry, PairEntry)


class FaultyError(Exception):
    """Ends the reading of one entry."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class PlacedPair(msgspec.Struct, frozen=True):
    """A pair, and the fault to report at the place of each model that it names."""

    entry: PairEntry
    names: tuple[tuple[str, Fault], ...]

    def faults(self, models: Mapping[str, ModelEntry]) -> list[Fault]:
        """The faults of the names that are no usable models; empty for a usable pair."""
        return [
            msgspec.structs.replace(fault, remedy=nearest(name, models))
            for name, fault in self.names
            if name not in models
        ]


class EntryReader:
    """Reads the entries of one file. Every method raises FaultyError, and nothing else."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def model(self, name: str, node: yaml.Node) -> ModelEntry:
        """The model that a node describes."""
        value = self._fields(name, node)
        source = value.get("source")
        if isinstance(source, dict):
            value["source"] = self._tagged(source, node_at(node, ["source"]))
        shape = value.get("shape")
        if isinstance(shape, dict):
            self._refuse_unknown(Shape, shape, node=node_at(node, ["shape"]))
        entry = self._checked(ModelEntry, value, node=node)
        if isinstance(entry.source, FolderSource):
            folder = self._folder(entry.source.path, node_at(node, ["source", "folder"]))
            return msgspec.structs.replace(entry, source=folder)
        return entry

    def pair(self, name: str, node: yaml.Node) -> PlacedPair:
        """The pair that a node describes, its models not yet looked for."""
        entry = self._checked(PairEntry, self._fields(name, node), node=node)
        self._offered(
            entry.method, entry.method_options, METHODS, node, ("method", "method_options")
        )
        self._offered(entry.rule, entry.rule_options, RULES, node, ("rule", "rule_options"))
        policy, options = entry.draft_length_policy, entry.draft_length_options
        fields = ("draft_length_policy", "draft_length_options")
        self._offered(policy, options, LENGTH_POLICIES, node, fields)
        field, what = _DRAFTERS.get(METHODS[entry.method].drafter, ("target", ""))
        if getattr(entry, field) is None:
            message = f"The pair {name!r} uses a draft {what} but names none."
            raise self.faulty(node, message, remedy=f"Add `{field}:` with the name of a {what}.")
        names = []
        roles = (("target", entry.target), ("draft", entry.draft), ("head", entry.head))
        for role, model in roles:
            if model is not None:
                message = f"The {role} {model!r} of the pair {name!r} is no usable model."
                place = node_at(node, [role])
                names.append((model, fault_at(self._file, place, message=message, remedy="")))
        return PlacedPair(entry, tuple(names))

    def _offered(
        self,
        name: str,
        options: Mapping[str, OptionValue],
        offers: Mapping[str, Offer],
        node: yaml.Node,
        fields: tuple[str, str],
    ) -> None:
        """Raises for a name that is not on offer in the first field, or for options in the second
        that it does not have.
        """
        if name not in offers:
            message = f"There is no {fields[0].replace('_', ' ')} {name!r}."
            raise self.faulty(node_at(node, [fields[0]]), message, remedy=nearest(name, offers))
        try:
            offers[name].filled(options)
        except Problem as problem:
            place = node_at(node, [fields[1]])
            raise self.faulty(place, problem.message, remedy=problem.remedy) from problem

    def text(self, node: yaml.Node, what: str) -> str:
        """The text of a scalar node; `what` it is goes into the fault."""
        value = self._plain(node)
        if isinstance(value, str) and value:
            return value
        message = f"The {what} is not text: YAML reads {value!r}."
        raise self.faulty(node, message, remedy="Put it in quotes.")

    def faulty(self, node: yaml.Node, message: str, *, remedy: str) -> FaultyError:
        """The error that ends an entry because of this node."""
        return FaultyError(fault_at(self._file, node, message=message, remedy=remedy))

    def _fields(self, name: str, node: yaml.Node) -> dict[str, object]:
        """The plain fields of an entry, with its name."""
        if not isinstance(node, yaml.MappingNode):
            message = f"The entry {name!r} holds no fields."
            raise self.faulty(node, message, remedy="Indent its fields below its name.")
        if again := repeated_key(node):
            message = f"A field of {name!r} is there twice."
            raise self.faulty(again, message, remedy="Keep one of them.")
        if any(key == "name" for key, _, _ in keys(node)):
            remedy = f"Remove it: the line {name!r} above is the name."
            message = f"{name!r} has a field `name`."
            raise self.faulty(node_at(node, ["name"]), message, remedy=remedy)
        value = self._plain(node)
        assert isinstance(value, dict)
        return {**value, "name": name}

    def _tagged(self, source: dict[str, object], node: yaml.Node) -> dict[str, object]:
        """The fields of a source, and which kind they make it."""
        kinds = [kind for kind in _SOURCES if kind in source]
        if len(kinds) != 1:
            message = "A source has to hold exactly one of wheel, folder, hub, resource."
            raise self.faulty(node, message, remedy="For example `folder: /path/to/it`.")
        self._refuse_unknown(_SOURCES[kinds[0]], source, node=node)
        return {**source, "type": kinds[0]}

    def _folder(self, written: str, node: yaml.Node) -> FolderSource:
        """The folder, if relative taken from where the catalogue file lies.

        The folder that the program happens to be started in has no say.
        """
        if odd := _CONTROL.search(written):
            message = f"The path holds a control character ({odd[0]!r})."
            remedy = "Use forward slashes or single quotes: in double quotes \\t is a tab."
            raise self.faulty(node, message, remedy=remedy)
        at_home = written.startswith("~")
        return FolderSource(written if at_home else str(self._file.absolute().parent / written))

    def _checked(self, kind: type[_Entry], value: dict[str, object], *, node: yaml.Node) -> _Entry:
        """The entry that these fields make, held against its schema."""
        self._refuse_unknown(kind, value, node=node)
        try:
            return msgspec.convert(value, kind, strict=True)
        except msgspec.ValidationError as error:
            said, _, path = str(error).partition(" - at `$.")
            field = path.strip("`")
            message = f"{value['name']!r}: {field + ': ' if field else ''}{said}."
            place = node_at(node, field.split("."))
            raise self.faulty(place, message, remedy=_type_remedy(said)) from error

    def _refuse_unknown(
        self, kind: type[msgspec.Struct], value: dict[str, object], *, node: yaml.Node
    ) -> None:
        """Raises for a field that the schema does not have."""
        known = [name for name in kind.__struct_encode_fields__ if name != "name"]
        for key in value:
            if key not in (*known, "name"):
                written = keys(node) if isinstance(node, yaml.MappingNode) else []
                place = next((key_node for name, key_node, _ in written if name == str(key)), node)
                message = f"There is no field {key!r} here."
                raise self.faulty(place, message, remedy=nearest(str(key), known))

    def _plain(self, node: yaml.Node) -> object:
        """The plain value of a node."""
        try:
            return value_of(node)
        except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise FaultyError(yaml_fault(self._file, error, near=node)) from error


def nearest(name: str, known: Iterable[str]) -> str:
    """Advice for a name that is not known: the closest one, and all of them."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    guess = f"Did you mean {close[0]!r}? " if close else ""
    return f"{guess}Known: {', '.join(names) or 'none'}."


def _type_remedy(said: str) -> str:
    """What to do about a value of the wrong type."""
    if said.startswith("Expected `str`, got"):
        return "Put the value in quotes: YAML reads it as something other than text."
    if "missing required field" in said:
        return "Add the field."
    if "matching regex" in said:
        return "Check its spelling: it is not a name of this kind."
    return "Correct the value."
