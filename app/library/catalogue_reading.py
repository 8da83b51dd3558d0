"""One catalogue file: its good entries, and a fault with line and column for everything else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import yaml

from app.library.entries import Fault, ModelEntry
from app.library.entry_reading import EntryReader, FaultyError, PlacedPair, nearest
from app.library.yaml_nodes import compose, compose_text, fault_at

_SECTIONS = ("default", "models", "pairs")


class CatalogueFile(msgspec.Struct):
    """What one file holds."""

    models: list[ModelEntry] = []
    pairs: list[PlacedPair] = []
    default: tuple[str, Fault] | None = None
    """The pair named as default, and the fault to report if there is no such pair."""
    faults: list[Fault] = []


def read_catalogue_file(file: Path) -> CatalogueFile:
    """Reads a file; never raises, whatever it holds. A missing file is empty."""
    return _read(file, *compose(file))


def read_catalogue_text(file: Path, text: str) -> CatalogueFile:
    """As `read_catalogue_file`, for a text that stands in the file, or is to."""
    return _read(file, *compose_text(file, text))


def _read(file: Path, top: yaml.MappingNode | None, faults: list[Fault]) -> CatalogueFile:
    reading = _Reading(file, faults)
    if top is not None:
        for name, node in reading.named_parts(top):
            reading.take_section(name, node)
    return reading.found


class _Reading:
    """The reading of one file; faults gather while it goes on."""

    def __init__(self, file: Path, faults: list[Fault]) -> None:
        self.found = CatalogueFile(faults=faults)
        self._file = file
        self._reader = EntryReader(file)

    def take_section(self, name: str, node: yaml.Node) -> None:
        """Takes one top-level section in."""
        if name == "default":
            self._take_default(node)
        elif name in _SECTIONS:
            for entry_name, entry in self.named_parts(node):
                self._take_entry(name, entry_name, node=entry)
        else:
            self._add_fault(node, f"There is no section {name!r}.", remedy=nearest(name, _SECTIONS))

    def named_parts(self, node: yaml.Node) -> Iterator[tuple[str, yaml.Node]]:
        """The named parts of a mapping, each name once; faults for keys that are no names."""
        if not isinstance(node, yaml.MappingNode):
            # A section without entries is null, and no fault.
            if node.tag != "tag:yaml.org,2002:null":
                remedy = "Write a name, a colon, and the entry's lines indented below."
                self._add_fault(node, "Named entries are expected here.", remedy=remedy)
            return
        seen: set[str] = set()
        for key, value in node.value:
            try:
                name = self._reader.text(key, "name")
            except FaultyError as error:
                self.found.faults.append(error.fault)
                continue
            if name in seen:
                remedy = "Rename or remove one of them; the first is used."
                self._add_fault(key, f"{name!r} is there twice.", remedy=remedy)
            else:
                seen.add(name)
                yield name, value

    def _take_default(self, node: yaml.Node) -> None:
        """Keeps the default's name, to be looked for once all pairs are known."""
        try:
            pair = self._reader.text(node, "default")
        except FaultyError as error:
            self.found.faults.append(error.fault)
            return
        message = f"The default pair {pair!r} does not exist or is faulty."
        remedy = "Name one of the pairs."
        self.found.default = pair, fault_at(self._file, node, message=message, remedy=remedy)

    def _take_entry(self, section: str, name: str, *, node: yaml.Node) -> None:
        """Takes in one entry, or its fault."""
        try:
            if section == "models":
                self.found.models.append(self._reader.model(name, node))
            else:
                self.found.pairs.append(self._reader.pair(name, node))
        except FaultyError as error:
            self.found.faults.append(error.fault)

    def _add_fault(self, node: yaml.Node, message: str, *, remedy: str) -> None:
        self.found.faults.append(fault_at(self._file, node, message=message, remedy=remedy))
