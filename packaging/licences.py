"""The licences of all that a frozen program holds, in one text: the spec hands over its files.

A file belongs to the Python distribution that lists it, to Python itself, or to a package of the
system (dpkg tells). One that belongs to nobody, and a distribution without a word on its licence,
end the build: neither may be given to others.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

_TEXTS = ("licen", "copying", "copyright", "notice", "authors")
"""How names of files with licences begin, in small letters."""

_HERE = Path(__file__).resolve().parent

_KNOWN = {
    "Apache": ("../LICENSE",),
    "LGPL-3.0": ("licence-texts/LGPL-3.0.txt", "licence-texts/GPL-3.0.txt"),
}
"""Texts for distributions that only name their licence."""

_RULE = "=" * 100


class Unlicensed(Exception):
    """Something would be given to others without its licence."""


class Part(NamedTuple):
    """One thing that is in the program, with what its makers say of its use."""

    name: str
    version: str
    licence: str
    texts: tuple[str, ...]


def notices(files: Iterable[Path], own: Path, extra: Iterable[Part] = ()) -> str:
    """The whole text for these files; those below `own`, the project's folder, are left out."""
    parts = {*parts_of(files, own), *extra}
    ordered = sorted(parts, key=lambda part: part.name.lower())
    lines = [
        "What comes with Foretoken, and under which licence. The texts follow below.",
        "",
        *(f"{part.name} {part.version}: {part.licence}".strip() for part in ordered),
    ]
    shown: dict[str, str] = {}
    for part in ordered:
        lines += ["", _RULE, f"{part.name} {part.version}".strip(), _RULE]
        for text in part.texts:
            known = shown.setdefault(text, part.name)
            lines += ["", text if known == part.name else f"The text stands at {known}."]
    return "\n".join(lines) + "\n"


def parts_of(files: Iterable[Path], own: Path) -> set[Part]:
    """What these files are parts of. Raises Unlicensed for a file of nobody."""
    owners = _owners()
    named: dict[int, metadata.Distribution] = {}
    others: set[Path] = set()
    for file in {file.resolve() for file in files}:
        if file in owners:
            named[id(owners[file])] = owners[file]
        elif not file.is_relative_to(own.resolve()):
            others.add(file)
    pythons = {file for file in others if _is_python(file)}
    return {
        *map(_distribution, named.values()),
        *([_python()] if pythons else []),
        *_system_parts(others - pythons),
    }


def _owners() -> dict[Path, metadata.Distribution]:
    """Every file that a distribution of this environment lists."""
    return {
        Path(str(distribution.locate_file(file))).resolve(): distribution
        for distribution in metadata.distributions()
        for file in distribution.files or []
    }


def _distribution(distribution: metadata.Distribution) -> Part:
    """A distribution's word on its licence, and the texts that it brings."""
    told = distribution.metadata
    fields = ("License-Expression", "License")
    said = [_short(value) for field in fields for value in _all(told, field)]
    kinds = [word for word in _all(told, "Classifier") if word.startswith("License ::")]
    word = next(filter(None, said), "") or ", ".join(kind.split(" :: ")[-1] for kind in kinds)
    texts = tuple(
        Path(str(distribution.locate_file(file))).read_text(encoding="utf-8", errors="replace")
        for file in distribution.files or []
        if file.name.lower().startswith(_TEXTS) and file.suffix not in (".py", ".pyc")
    )
    if not texts:
        texts = _known_texts(word)
    if not texts:
        raise Unlicensed(f"{told['Name']} {told['Version']} brings no licence: it says {word!r}.")
    return Part(told["Name"], told["Version"], word or "see its text", tuple(dict.fromkeys(texts)))


def _known_texts(word: str) -> tuple[str, ...]:
    """The texts of a licence that is only named; none for one that is not known here."""
    files = next((files for name, files in _KNOWN.items() if word.startswith(name)), ())
    return tuple((_HERE / file).read_text(encoding="utf-8") for file in files)


def _all(told: metadata.PackageMetadata, field: str) -> list[str]:
    """Every value of a field of metadata."""
    return told.get_all(field) or []


def _is_python(file: Path) -> bool:
    """Whether a file that no distribution lists came with Python itself."""
    folders = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
    if os.name == "nt":
        folders.add(Path(sys.base_prefix).resolve())
    named = file.name.lower().startswith(("libpython", "python"))
    return named or any(file.is_relative_to(folder) for folder in folders)


def _short(licence: str) -> str:
    """The field of old metadata if it is a name; some put the whole text there."""
    return licence if licence and "\n" not in licence and len(licence) < 100 else ""


def _python() -> Part:
    version = ".".join(map(str, sys.version_info[:3]))
    places = (
        Path(sysconfig.get_path("stdlib")) / "LICENSE.txt",
        Path(sys.base_prefix) / "LICENSE.txt",
        Path(f"/usr/share/doc/python{version.rpartition('.')[0]}/copyright"),
    )
    text = next((p.read_text(encoding="utf-8") for p in places if p.is_file()), None)
    if text is None:
        raise Unlicensed("The licence of Python itself was not found.")
    return Part("Python", version, "PSF-2.0", (text,))


def _system_parts(files: set[Path]) -> set[Part]:
    """The system's packages that these libraries are from, as dpkg tells."""
    found: dict[str, Part] = {}
    for file in sorted(files):
        package = _package_of(file)
        if package not in found:
            copyright_ = Path("/usr/share/doc", package, "copyright")
            text = copyright_.read_text(encoding="utf-8", errors="replace")
            found[package] = Part(package, _version_of(package), "see its text", (text,))
    return set(found.values())


def _package_of(file: Path) -> str:
    places = [file, Path("/", *file.parts[2:])] if file.parts[:2] == ("/", "usr") else [file]
    for place in places:
        answer = _ask("dpkg-query", "--search", str(place))
        if answer:
            return answer.split(":")[0].split(",")[0]
    raise Unlicensed(f"Nobody is known to have made {file}.")


def _version_of(package: str) -> str:
    return _ask("dpkg-query", "--show", "--showformat=${Version}", package)


def _ask(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""
