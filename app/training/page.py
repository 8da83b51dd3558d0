"""A page to write on: fills the gaps of a sentence with words from the lists that ship."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import yaml

from app import files

Lists = Mapping[str, Sequence[str]]

_GAP = re.compile(r"«((?:[^«»]|«[^«»]*»)*)»")
_EITHER = re.compile(r"\|(?![^«]*»)")
_NUMBER = re.compile(r"(\d+)-(\d+)(?::(\d+))?")
_ARTICLE = re.compile(r"\b([Aa])\(n\)(\s+\W?)(\w+)")
_VOWEL = re.compile(
    r"(?!unan|uni|uku|use|usu|uti|eu|one|once)[aeiou]|hour|honest|honour|heir|xml|8|11\b|18\b", re.I
)


class Page:
    """One text in the making. What a gap may hold:

    `«fruit»` an entry of the list `fruit`, itself filled, and rarely the same twice.
    `«fruit#1»` the same entry wherever it stands again. `«^fruit»` with a capital.
    `«3-20»` and `«10-90:5»` a whole number, in steps of 5.
    `«a pear|some «fruit»|»` one of these, or nothing: gaps may stand in it.
    """

    def __init__(self, rng: random.Random, lists: Lists) -> None:
        self.rng = rng
        self._lists = lists
        self._bound: dict[str, str] = {}
        self._used: dict[str, set[str]] = {}

    def bind(self, name: str, text: str) -> None:
        """Lets `«name»` stand for this text, as it is."""
        self._bound[name] = text

    def has(self, name: str) -> bool:
        """Whether there is a list of this name."""
        return name in self._lists

    def chance(self, share: float) -> bool:
        """True in so large a share of the cases."""
        return self.rng.random() < share

    def write(self, name: str) -> str:
        """An entry of a list, filled. Raises KeyError where there is no such list."""
        return self.fill(self.pick(name))

    def pick(self, name: str) -> str:
        """An entry of a list, as it stands there."""
        used = self._used.setdefault(name, set())
        entries = self._lists[name]
        for _ in range(8):
            entry = self.rng.choice(entries)
            if entry not in used:
                break
        used.add(entry)
        return entry

    def several(self, name: str, count: int) -> list[str]:
        """So many entries of a list, or all, filled, in a new order."""
        entries = self._lists[name]
        return [self.fill(entry) for entry in self.rng.sample(entries, min(count, len(entries)))]

    def fill(self, text: str) -> str:
        """The text with every gap filled, and `a(n)` made to suit the word behind it."""
        return _ARTICLE.sub(_article, _GAP.sub(lambda gap: self._filled(gap[1]), text))

    def _filled(self, gap: str) -> str:
        if "|" in gap:
            return self.fill(self.rng.choice(_EITHER.split(gap)))
        name = gap.removeprefix("^")
        text = self._bound.get(name)
        if text is None:
            text = self._drawn(name.partition("#")[0])
            if "#" in name:
                self._bound[name] = text
        return capital(text) if gap.startswith("^") else text

    def _drawn(self, name: str) -> str:
        number = _NUMBER.fullmatch(name)
        if number is None:
            return self.write(name)
        low, high, step = int(number[1]), int(number[2]), int(number[3] or 1)
        return str(self.rng.randrange(low, high + 1, step))


def capital(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def _article(found: re.Match[str]) -> str:
    n = "n" if _VOWEL.match(found[3]) else ""
    return f"{found[1]}{n}{found[2]}{found[3]}"


@cache
def shipped_lists() -> Lists:
    """All lists of the files in `resources/training`. Raises ValueError for a name used twice."""
    lists: dict[str, Sequence[str]] = {}
    for file in sorted(files.resource("training").glob("*.yaml")):
        for name, entries in read_lists(file).items():
            if name in lists:
                raise ValueError(f"{file.name} names {name!r}, which another file has.")
            lists[name] = entries
    return lists


def read_lists(file: Path) -> dict[str, tuple[str, ...]]:
    """The lists of one file: YAML lists, or texts whose entries are parted by semicolons."""
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {
        name: tuple(
            map(str.strip, value.split(";"))
            if isinstance(value, str)
            else (str(entry).rstrip("\n") for entry in value)
        )
        for name, value in content.items()
    }
