"""A GGUF file's metadata, asked for by name and type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from gguf import GGMLQuantizationType, GGUFReader, ReaderTensor

from app.run.problems import Problem

_Value = TypeVar("_Value")
_REMEDY = "Get the file again, or choose another one."


class Tensor(Protocol):
    """What is said of a tensor before it is read; its shape's fastest axis comes first."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def shape(self) -> Any: ...  # noqa: D102
    @property
    def n_elements(self) -> int: ...  # noqa: D102
    @property
    def tensor_type(self) -> GGMLQuantizationType: ...  # noqa: D102


class Metadata(ABC):
    """What a GGUF file says of its model, however it was read."""

    path: Path

    @abstractmethod
    def content(self, key: str) -> object:
        """The value of a key, None if the file lacks it."""

    @property
    @abstractmethod
    def tensors(self) -> Sequence[Tensor]:
        """Every tensor, in file order."""

    def find(self, key: str, kind: type[_Value]) -> _Value | None:
        """The value of a key, None if the file lacks it. Raises Problem for another type."""
        value = self.content(key)
        if value is None:
            return None
        if kind is float and isinstance(value, int):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise Problem(f"{self.path.name}: {key} is not of the type {kind.__name__}.", _REMEDY)
        return value

    def get(self, key: str, kind: type[_Value]) -> _Value:
        """The value of a key. Raises Problem if the file lacks it."""
        value = self.find(key, kind)
        if value is None:
            raise Problem(f"{self.path.name} does not say its {key}.", _REMEDY)
        return value

    @property
    def quantisation(self) -> str:
        """The name of the format that holds most of the weights, such as Q4_1."""
        elements: dict[str, int] = {}
        for tensor in self.tensors:
            name = tensor.tensor_type.name
            elements[name] = elements.get(name, 0) + int(tensor.n_elements)
        return max(elements, key=elements.__getitem__, default="nothing")


class GgufFile(Metadata):
    """An opened GGUF file; tensors stay on disk until they are read."""

    def __init__(self, path: Path) -> None:
        """Opens the file. Raises Problem if it is not a whole GGUF file."""
        self.path = path
        check_magic(path)
        try:
            self._reader = GGUFReader(path)
        except (ValueError, IndexError, OverflowError, KeyError) as error:
            raise Problem(f"{path} is not a whole GGUF file: {error}.", _REMEDY) from error

    def content(self, key: str) -> object:
        """The value of a key, None if the file lacks it."""
        field = self._reader.get_field(key)
        return None if field is None else field.contents()

    @property
    def tensors(self) -> list[ReaderTensor]:
        """Every tensor, in file order."""
        return list(self._reader.tensors)


def check_magic(path: Path) -> None:
    """Raises Problem unless the file begins as GGUF files do."""
    try:
        with path.open("rb") as file:
            start = file.read(24)
    except OSError as error:
        raise Problem(f"{path} cannot be read: {error.strerror}.", _REMEDY) from error
    if start.startswith(b"version https://git-lfs"):
        raise Problem(f"{path} is a Git LFS pointer, not the model itself.", "Run `git lfs pull`.")
    if not start.startswith(b"GGUF") or len(start) < 24:
        raise Problem(f"{path} is not a GGUF file.", _REMEDY)
