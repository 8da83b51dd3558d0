"""Files spoilt in every way that a disk, a download or a person has: seeded, so always the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

_VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**63,
    10**30,
    -(10**30),
    0.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "a",
    "\0",
    "../../outside",
    "/",
    "é" * 300,
    [],
    {},
    [[]],
    [-1],
    [10**30],
    {"": None},
]
_SNIPPETS = [
    b"\0",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"9" * 400,
    b"-",
    b"1e999",
    b'"',
    b"\\ud800",
    b"{",
    b"]",
    b"\n\t",
    b": ",
    b"*a &a ",
    b"!!python/object:os.system ",
]


def mutations(text: bytes, seed: int, count: int, *, deep: int = 5_000) -> Iterator[bytes]:
    """That many spoilt versions of a file; of JSON, every second has another value instead.

    Brackets are opened `deep` times in some of them: more often than anything may recurse.
    """
    snippets = [*_SNIPPETS, b"[" * deep]
    random = Random(seed)
    try:
        whole = json.loads(text)
    except ValueError:
        whole = None
    for number in range(count):
        if whole is not None and number % 2:
            yield _with_another_value(whole, random)
        else:
            yield _with_other_bytes(text, random, snippets)


def _with_other_bytes(text: bytes, random: Random, snippets: list[bytes]) -> bytes:
    """One to three bytes flipped, stretches cut or doubled, or snippets put in."""
    spoilt = bytearray(text)
    for _ in range(random.randint(1, 3)):
        place = random.randrange(len(spoilt) + 1)
        end = min(place + random.choice([1, 1, 4, 30]), len(spoilt))
        kind = random.randrange(6)
        if kind == 0 and place < len(spoilt):
            spoilt[place] ^= 1 << random.randrange(8)
        elif kind == 1:
            del spoilt[place:end]
        elif kind == 2:
            spoilt[place:place] = random.choice(snippets)
        elif kind == 3:
            spoilt[place:place] = spoilt[place:end]
        elif kind == 4:
            spoilt[place:end] = random.choice(snippets)
        elif kind == 5 and random.random() < 0.3:
            del spoilt[place:]
    return bytes(spoilt)


def _with_another_value(whole: Any, random: Random) -> bytes:
    """The same JSON with one or two values replaced, renamed, or removed."""
    copy = json.loads(json.dumps(whole))
    for _ in range(random.randint(1, 2)):
        holder, key = random.choice(list(_places(copy)))
        kind = random.randrange(4)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[str(random.choice(_VALUES))] = holder.pop(key)
        else:
            holder[key] = json.loads(json.dumps(random.choice(_VALUES)))
        if not copy:
            break
    return json.dumps(copy).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a value that something stands at; of a long list or mapping only some."""
    if isinstance(value, dict):
        keys: list[Any] = list(value)
    else:
        keys = list(range(len(value))) if isinstance(value, list) else []
    for key in keys[:20]:
        yield value, key
        yield from _places(value[key])
