"""Which files hold a folder's weights, judged by their headers alone: nothing is loaded."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from app.library.json_text import decode
from app.library.pickled import conversion_command, pickled_files
from app.run.problems import Problem

_AGAIN = "Get the file again; an interrupted download or copy leaves such files."
_LARGEST_HEADER = 100_000_000
"""The format's own limit, in bytes."""
_WRITTEN_LINK = re.compile(rb"(\.\.[/\\])+blobs[/\\][0-9a-z]+\s*")
_BITS = {"F64": 64, "I64": 64, "F32": 32, "I32": 32, "BF16": 16, "F16": 16, "I8": 8, "U8": 8}
"""Bits of a number, for the common types; of the others nothing is said."""


class TensorPlace(msgspec.Struct, frozen=True):
    """One tensor, as a safetensors header names it."""

    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]

    @property
    def elements(self) -> int:
        """How many numbers it holds."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def is_sound(self) -> bool:
        """Whether so many numbers of this type can lie in that place."""
        start, end = self.data_offsets
        bits = _BITS.get(self.dtype)
        fits = bits is None or 8 * (end - start) == bits * self.elements
        return 0 <= start <= end and all(size >= 0 for size in self.shape) and fits


class WeightFile(msgspec.Struct, frozen=True):
    """One safetensors file and what its header names."""

    path: Path
    tensors: dict[str, TensorPlace]

    @property
    def weight_bytes(self) -> int:
        """Bytes of tensors."""
        return sum(t.data_offsets[1] - t.data_offsets[0] for t in self.tensors.values())


class _Index(msgspec.Struct):
    """The part of model.safetensors.index.json that matters."""

    weight_map: dict[str, str]


def weight_files(folder: Path) -> tuple[WeightFile, ...]:
    """The safetensors files that a loader takes, every header checked.

    Raises Problem for missing, cut, empty or foreign files, and for pickled weights alone. As
    transformers does, a single model.safetensors is taken before an index of shards.
    """
    single = folder / "model.safetensors"
    index = folder / "model.safetensors.index.json"
    if single.exists():
        return (read_header(single),)
    if index.is_file():
        return _shards(folder, index)
    raise _missing(folder)


def _shards(folder: Path, index: Path) -> tuple[WeightFile, ...]:
    """The files that the index names, each holding what the index says it does."""
    try:
        places = decode(index.read_bytes(), _Index).weight_map
    except msgspec.DecodeError as error:
        raise Problem(f"{index} is not a valid index: {error}.", _AGAIN) from error
    names = sorted(set(places.values()))
    outside = [name for name in names if Path(name).name != name or name in (".", "..")]
    if outside:
        raise Problem(f"{index} names files outside its folder: {_listed(outside)}.", _AGAIN)
    missing = [name for name in names if not (folder / name).exists()]
    for name in missing:
        refuse_dangling(folder / name)
    if missing:
        raise Problem(
            f"{len(missing)} of {len(names)} weight files are missing in {folder}: "
            f"{_listed(missing)}.{_unfinished(folder)}",
            "Finish the download; or, if the index is a leftover, remove it.",
        )
    files = tuple(read_header(folder / name) for name in names)
    held = {(tensor, file.path.name) for file in files for tensor in file.tensors}
    lost = sorted(tensor for tensor, name in places.items() if (tensor, name) not in held)
    if lost:
        raise Problem(
            f"{index} places {_listed(lost)} in files that do not hold them.",
            "Index and weight files belong to different versions: get the whole folder again.",
        )
    return files


def read_header(file: Path) -> WeightFile:
    """The header of one file. Raises Problem saying what is wrong with the file."""
    if not file.is_file():
        raise Problem(f"{file} is a folder, not a weight file.", _AGAIN)
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(8)
        if start == b"version ":
            raise Problem(f"{file} is a Git LFS pointer, not the weights.", "Run `git lfs pull`.")
        refuse_written_link(file, start + stream.read(200))
        stream.seek(8)
        length = int.from_bytes(start, "little")
        if size < 8 or length > min(size - 8, _LARGEST_HEADER):
            what = "is empty" if size == 0 else "is cut short or not a safetensors file"
            raise Problem(f"{file} {what} ({size:,} bytes).", _AGAIN)
        header = stream.read(length)
    return WeightFile(file, _tensors(file, header, data_bytes=size - 8 - length))


def _tensors(file: Path, header: bytes, *, data_bytes: int) -> dict[str, TensorPlace]:
    """The tensors that a header names, which have to fill the rest of the file."""
    try:
        raw = decode(header, dict[str, msgspec.Raw])
        raw.pop("__metadata__", None)
        found = {name: decode(part, TensorPlace) for name, part in raw.items()}
    except msgspec.DecodeError as error:
        raise Problem(f"{file} has a broken header: {error}.", _AGAIN) from error
    for name, place in found.items():
        if not place.is_sound:
            raise Problem(
                f"{file} has a broken header: {name!r} of shape {list(place.shape)} cannot lie "
                f"at {place.data_offsets[0]} to {place.data_offsets[1]}.",
                _AGAIN,
            )
    end = max((place.data_offsets[1] for place in found.values()), default=0)
    if end != data_bytes:
        short = "cut short" if end > data_bytes else "longer than its header says"
        raise Problem(f"{file} is {short}: {data_bytes:,} of {end:,} bytes of weights.", _AGAIN)
    return found


def _missing(folder: Path) -> Problem:
    """Why a folder without usable weights has none; raised at once for a dangling link."""
    names = sorted(path.name for path in folder.iterdir())
    pickled = [name for name in names if name.endswith((".bin", ".pt", ".pth", ".ckpt"))]
    for name in names:
        refuse_dangling(folder / name)
    if pickled_files(folder):
        return Problem(
            f"{folder} holds its weights only as pickle ({_listed(pickled)}), which can run code.",
            "Choose a version with .safetensors files. Or run this command, which reads tensors "
            f"and nothing else, and writes them beside: {conversion_command(folder)}",
        )
    if pickled:
        return Problem(
            f"{folder} holds its weights only as pickle ({_listed(pickled)}), which can run code.",
            "Choose a version with .safetensors files.",
        )
    other = [name for name in names if name.endswith(".safetensors")]
    more = f" There is {_listed(other)}, under a name that no loader takes." if other else ""
    return Problem(
        f"{folder} holds no weights: model.safetensors is missing.{more}{_unfinished(folder)}",
        "Choose the folder that holds model.safetensors, or finish the download.",
    )


def refuse_dangling(path: Path) -> None:
    """Raises Problem for a link whose target is not there, as copied caches have them."""
    if path.is_symlink() and not path.exists():
        raise Problem(
            f"File missing: the target of the link {path}, {path.readlink()}.",
            "Copy the cache with its links resolved, or download the model again.",
        )


def refuse_written_link(file: Path, content: bytes) -> None:
    """Raises Problem for a link of the Hub's cache that was copied as a file with its text."""
    if _WRITTEN_LINK.fullmatch(content):
        raise Problem(
            f"{file} holds nothing but the text of a link, {content.decode().strip()}: the cache "
            "was copied without what its links lead to.",
            "Copy the cache with its links resolved, or download the model again.",
        )


def _unfinished(folder: Path) -> str:
    """Names the files that a download has left unfinished."""
    names = [str(path.relative_to(folder)) for path in unfinished_files(folder)]
    return f" Unfinished: {_listed(names)}." if names else ""


def unfinished_files(folder: Path) -> tuple[Path, ...]:
    """Files that an interrupted download has left in this folder or its own cache."""
    ends = (".incomplete", ".part", ".crdownload", ".aria2")
    return tuple(sorted(path for path in folder.rglob("*") if path.suffix in ends))


def _listed(names: list[str]) -> str:
    """Up to five names, and how many more there are."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
