"""The header of a GGUF file, read without its weights: milliseconds, whatever the file's size."""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Sequence
from pathlib import Path

import msgspec
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

from app.library.gguf_metadata import Metadata, check_magic
from app.run.problems import Problem

_AGAIN = "Get the file again; an interrupted download or copy leaves such files."
_VERSIONS = (2, 3)
_LARGEST_HEADER = 256 << 20
"""Bytes; those of the largest vocabularies have some twenty million."""
_MOST_ENTRIES = 4_000_000
"""Of one array."""
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q"} | {
    12: "d"
}
_STRING, _ARRAY = 8, 9
_COUNT = struct.Struct("<Q")
_WORD = struct.Struct("<I")


class Listed(msgspec.Struct, frozen=True):
    """A list in the metadata, of which only the length was read."""

    length: int


class HeaderTensor(msgspec.Struct, frozen=True):
    """A tensor as the header names it; its shape's fastest axis comes first."""

    name: str
    shape: tuple[int, ...]
    tensor_type: GGMLQuantizationType
    offset: int
    """Bytes from the beginning of the weights."""

    @property
    def n_elements(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)

    @property
    def n_bytes(self) -> int:
        """Bytes that it takes in the file."""
        block, size = GGML_QUANT_SIZES[self.tensor_type]
        return self.n_elements // block * size


class GgufHeader(Metadata):
    """What a GGUF file says of itself. Lists are counted, not read."""

    def __init__(self, path: Path) -> None:
        """Reads the header. Raises Problem for a broken one, and for a file that is cut short."""
        self.path = path
        check_magic(path)
        try:
            with (
                path.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
            ):
                reader = _Reader(content)
                self._values, self._tensors = reader.metadata(), reader.tensors()
                start, size = reader.at, len(content)
        except OSError as error:
            raise Problem(f"{path} cannot be read: {error.strerror}.", "Check the drive.") from None
        except (struct.error, ValueError, KeyError, OverflowError) as error:
            raise Problem(f"{path} is not a whole GGUF file: {error}.", _AGAIN) from error
        self._refuse_cut(start, size)

    def content(self, key: str) -> object:
        """The value of a key, None if the file lacks it; `Listed` for a list."""
        return self._values.get(key)

    @property
    def tensors(self) -> Sequence[HeaderTensor]:
        """Every tensor, in file order."""
        return self._tensors

    def _refuse_cut(self, start: int, size: int) -> None:
        """Raises Problem if the weights reach beyond the end of the file."""
        step = self.find("general.alignment", int) or 32
        if self._tensors:
            start += -start % step
        end = start + max((tensor.offset + tensor.n_bytes for tensor in self._tensors), default=0)
        if end > size:
            raise Problem(
                f"{self.path} is cut short: {size:,} of {end:,} bytes.",
                _AGAIN,
            )


class _Reader:
    """Goes through the bytes of a header, which may hold anything."""

    def __init__(self, content: mmap.mmap) -> None:
        self._content = content
        version = _WORD.unpack_from(content, 4)[0]
        if version not in _VERSIONS:
            raise ValueError(f"its version is {version}, not one of {_VERSIONS}")
        self._tensor_count, self._key_count = struct.unpack_from("<QQ", content, 8)
        self.at = 24

    def metadata(self) -> dict[str, object]:
        """Every key and its value."""
        found: dict[str, object] = {}
        for _ in range(self._key_count):
            key = self._text()
            found[key] = self._value(self._word())
        return found

    def tensors(self) -> tuple[HeaderTensor, ...]:
        """Every tensor's name, shape, type and place."""
        return tuple(self._tensor() for _ in range(self._tensor_count))

    def _tensor(self) -> HeaderTensor:
        name, axes = self._text(), self._word()
        if axes > 8:
            raise ValueError(f"the tensor {name!r} has {axes} axes")
        shape = struct.unpack_from(f"<{axes}Q", self._content, self.at)
        self._skip(8 * axes)
        kind = GGMLQuantizationType(self._word())
        return HeaderTensor(name, shape, kind, self._number())

    def _value(self, kind: int) -> object:
        if kind == _STRING:
            return self._text()
        if kind == _ARRAY:
            return self._listed()
        form = f"<{_SCALARS[kind]}"
        value: object = struct.unpack_from(form, self._content, self.at)[0]
        self._skip(struct.calcsize(form))
        return value

    def _listed(self) -> Listed:
        """Goes past a list. Raises ValueError for one of lists, and for one that is too long."""
        kind, length = self._word(), self._number()
        if length > _MOST_ENTRIES:
            raise ValueError(f"it holds a list of {length:,} entries")
        if kind == _STRING:
            at, content, number = self.at, self._content, _COUNT.unpack_from
            for _ in range(length):
                at += 8 + number(content, at)[0]
            self._skip(at - self.at)
        else:
            self._skip(length * struct.calcsize(f"<{_SCALARS[kind]}"))
        return Listed(length)

    def _text(self) -> str:
        length = self._number()
        start = self.at
        self._skip(length)
        return self._content[start : self.at].decode("utf-8", "replace")

    def _word(self) -> int:
        value: int = _WORD.unpack_from(self._content, self.at)[0]
        self._skip(4)
        return value

    def _number(self) -> int:
        value: int = _COUNT.unpack_from(self._content, self.at)[0]
        self._skip(8)
        return value

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > min(len(self._content), _LARGEST_HEADER):
            raise ValueError("its header does not end")
